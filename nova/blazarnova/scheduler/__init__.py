"""What nova-scheduler asks of Blazar: the rules, and the filters that apply them."""
