"""Usage and task lists, as the client reports them."""
