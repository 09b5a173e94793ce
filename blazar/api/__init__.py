# SPDX-License-Identifier: Apache-2.0
"""The REST API: paths, headers, JSON and who may do what. It speaks to a manager through ``rpc.interface`` only.

What may enter: HTTP. No rule of the domain lives here; requests are parsed into values and answers rendered from them.
"""
