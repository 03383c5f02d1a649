out=$(sh src/greet.sh you)
echo "$out"
test "$out" = "hello, you"
