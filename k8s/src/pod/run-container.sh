#!/bin/sh
# Becomes a container's process, without a container runtime: run it as root in a network and a mount namespace of its own.
#
#   run-container.sh SWITCH ADDRESS ROOT UID GID WORKDIR PATH COMMAND...
#
# SWITCH   process in whose network namespace the bridge `pods` is
# ADDRESS  of the pod in the network, such as 10.77.0.12
# ROOT     an empty folder; `mounts` beside it names what is put there: lines of SOURCE TARGET ro|rw
# The environment is the container's. Its root file system is read-only; only what is mounted rw can be written.
set -eu
switch=$1 address=$2 root=$3 uid=$4 gid=$5 workdir=$6 container_path=$7
shift 7
# The tools below are this machine's; the container's own PATH comes at the end.
tools=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin
at() { PATH=$tools "$@"; }

link=pod${address##*.}
at nsenter --target "$switch" --net ip link add "$link" type veth peer name eth0 netns $$
at nsenter --target "$switch" --net ip link set "$link" master pods up
at ip link set lo up
at ip address add "$address/24" dev eth0
at ip link set eth0 up

at mount --make-rprivate /
at mount -t tmpfs -o mode=755 root "$root"
for folder in usr bin lib lib64 sbin; do
  [ -e "/$folder" ] || continue
  at mkdir "$root/$folder"
  at mount --rbind "/$folder" "$root/$folder"
  at mount -o remount,bind,ro "$root/$folder"
done
for folder in proc dev; do
  at mkdir "$root/$folder"
  at mount --rbind "/$folder" "$root/$folder"
done
at mkdir "$root/etc"
at cp /etc/ld.so.cache "$root/etc/" 2>/dev/null || true
while read -r source target mode; do
  if [ -d "$source" ]; then at mkdir -p "$root$target"; else at mkdir -p "$(at dirname "$root$target")" && at touch "$root$target"; fi
  at mount --bind "$source" "$root$target"
  [ "$mode" = rw ] || at mount -o remount,bind,ro "$root$target"
done <"$root.mounts"
at mkdir -p "$root$workdir"
at mount -o remount,ro "$root"

export PATH="$container_path"
exec /usr/sbin/chroot "$root" /usr/bin/setpriv --pdeathsig KILL --reuid "$uid" --regid "$gid" --clear-groups \
  --bounding-set -all --inh-caps -all --no-new-privs /usr/bin/env --chdir="$workdir" "$@"
