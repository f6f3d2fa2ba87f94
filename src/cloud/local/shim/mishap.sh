#!/usr/bin/env bash
# Stands in for a program of a pod on which something is wrong that no program can bring about: its
# volume is frozen or full. The pod's file `mishap` says what, where the volume is mounted, and where it
# lies. What is not concerned goes to the program itself.
name=${0##*/}
pod=${0%/bin/*}

# Whether the program is given the volume, as a word or as a stream.
touches() {
  local word fd
  for word in "$@"; do
    case $word in "$mount" | "$mount"/* | "$volume" | "$volume"/* | *="$mount"/* | *="$volume"/*) return 0 ;; esac
  done
  for fd in 0 1; do streams "$fd" && return 0; done
  return 1
}

# Whether descriptor $1 is a file on the volume. Without /proc nobody can say.
streams() {
  case $(readlink "/proc/$$/fd/$1" 2>/dev/null) in "$volume"/*) return 0 ;; *) return 1 ;; esac
}

what='' mount='' volume=''
{ read -r what && read -r mount && read -r volume; } <"$pod/mishap" 2>/dev/null
case $what in
  frozen)
    if touches "$@"; then
      while read -r what <"$pod/mishap" && [ "$what" = frozen ]; do sleep 0.2; done 2>/dev/null
    fi
    ;;
  full)
    case $name in
      df) touches "$@" && printf 'Filesystem 1024-blocks Used Available Capacity Mounted\nvolume 1 1 0 100%% %s\n' "$mount" && exit ;;
      cp | dd | mkdir | mv | rsync | tee | touch) ! touches "$@" || full=1 ;;
      *) ! streams 1 || full=1 ;;
    esac
    if [ -n "${full:-}" ]; then
      echo "$name: cannot write: No space left on device" >&2
      exit 1
    fi
    ;;
esac
real=$(PATH=${PATH//"$pod/bin:"/} && command -v "$name") || exit 127
exec "$real" "$@"
