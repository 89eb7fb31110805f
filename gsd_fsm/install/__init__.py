"""Install, check and remove the hook, the plugin and the status line."""
