# Makes the control group $1, and removes it when weir has ended, however it ended: weir holds the other end of our input until then.
# The output may no longer have a reader.
trap '' INT TERM HUP PIPE
rmdir "$1" 2>/dev/null # a process that is gone made one of the same name
mkdir "$1" 2>&1 || exit
echo made
exec >/dev/null 2>&1
read -r told
# Weir was killed, and its command got SIGTERM. Our descriptors keep the control in the kernel as long as a process runs in the group.
[ "$told" = ended ] || while [ -d "$1" ] && ! rmdir "$1"; do sleep 0.1; done
# The command has ended: processes that it left running move to the group above.
for _ in $(seq 100); do
    [ -d "$1" ] || exit
    rmdir "$1" && exit
    while read -r process; do echo "$process" >"$1/../cgroup.procs"; done <"$1/cgroup.procs"
    sleep 0.05
done
