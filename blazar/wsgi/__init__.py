"""Entry points for WSGI servers: uWSGI, gunicorn, mod_wsgi."""
