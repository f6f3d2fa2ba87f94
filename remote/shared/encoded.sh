#!/usr/bin/env bash
# In base64 on one line; ends this process. GNU's breaks lines unless it is told not to, and BSD's cannot
# be told.
encoded() {
  case $OSTYPE in
    linux*) exec base64 -w 0 ;;
    *) base64 | tr -d '\n' ;;
  esac
}
