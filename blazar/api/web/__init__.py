# SPDX-License-Identifier: Apache-2.0
"""The web pages and their sign-in: WSGI layers in front of the application, outside of its routes and microversions."""
