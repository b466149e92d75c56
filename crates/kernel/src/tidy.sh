# Makes the control group $1, and removes it once weir has gone, however it went: weir holds the other end of our input until then.
# Nobody may be left to read what we say.
trap '' INT TERM HUP PIPE
rmdir "$1" 2>/dev/null # one of the same name was made by a process that is gone
mkdir "$1" 2>&1 || exit
echo made
exec >/dev/null 2>&1
read -r told
# Weir was killed, and its command was told to end. What descriptors we have keeps the control there for as long as anything runs here.
[ "$told" = ended ] || while [ -d "$1" ] && ! rmdir "$1"; do sleep 0.1; done
# The command has ended: what it left running moves to the group above.
for _ in $(seq 100); do
    [ -d "$1" ] || exit
    rmdir "$1" && exit
    while read -r process; do echo "$process" >"$1/../cgroup.procs"; done <"$1/cgroup.procs"
    sleep 0.05
done
