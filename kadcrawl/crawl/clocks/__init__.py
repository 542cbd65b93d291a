"""Shared clocks: sites on one IP address, or the URLs of one host, are asked by one clock, whatever peers own them.

`clock_names` names the clocks and has the times of leases. The owner of a clock's key leases the clock: `clock_keeper`
decides, and `clock_host` answers. A peer that asks a site holds the lease of its clock: `shared_clock` decides which
request is next there, and `clock_holder` asks for leases. `addresses` finds the IP address of a host.
"""
