# SPDX-License-Identifier: Apache-2.0
"""The REST API: paths, headers, JSON and authorization. It calls the manager through ``rpc.interface`` only.

``http`` is the framework, the other folders are named by what they serve; ``parts`` lists them, ``app`` serves them.
What may enter: HTTP. No domain rules: requests are parsed into values and responses are rendered from values.
"""
