# health.sh [PID]: whether nats-server stores what it is given. A stream that could not write keeps its error until a restart:
# once /data has 16 MB again, this ends nats-server, and the restart policy starts it. At most once a minute, since a broken
# disk has room, too.
pid=${1:-1}
health=$(printf 'GET /healthz HTTP/1.0\r\n\r\n' | nc -w 2 127.0.0.1 8222)
case $health in
  *'"status":"ok"'*) exit 0 ;;
  *' write error: '*) ;;
  *) exit 1 ;;
esac
free=$(df -Pk /data | awk 'NR == 2 { print $4 }')
# Field 22 of stat: when the process was started, in hundredths of a second since the start of the machine.
age=$(($(cut -d. -f1 /proc/uptime) - $(cut -d' ' -f22 "/proc/$pid/stat") / 100))
if [ "$free" -ge 16384 ] && [ "$age" -ge 60 ]; then
  echo 'There is room: nats-server is restarted.'
  kill "$pid"
fi
exit 1
