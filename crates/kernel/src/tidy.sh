# Removes the control group $1 once weir has gone, however it went: until then it holds the other end of our input. What is still
# running there moves to the group above.
trap '' INT TERM HUP
cat >/dev/null
for _ in $(seq 100); do
    rmdir "$1" 2>/dev/null && exit
    while read -r process; do echo "$process" >"$1/../cgroup.procs"; done <"$1/cgroup.procs"
    sleep 0.05
done 2>/dev/null
