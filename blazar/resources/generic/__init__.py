# SPDX-License-Identifier: Apache-2.0
"""Things of any class, handed over and taken back by a signed HTTP hook: instruments, licences, boards, benches."""
