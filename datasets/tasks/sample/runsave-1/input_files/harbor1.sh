echo speed 383
echo camera blue
touch .ran