#!/bin/sh
# Stands in for ssh: agent.sh 10.77.0.N COMMAND... runs the command on host N of hosts.py.
host=dpsvi-h${1##*.}
shift
exec ip netns exec "$host" unshare --uts sh -c "hostname $host; $*"
