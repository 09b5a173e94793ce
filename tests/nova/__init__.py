"""The scheduler filter, which is installed beside nova and not beside the service."""
