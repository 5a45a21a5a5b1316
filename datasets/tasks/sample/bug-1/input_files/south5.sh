cp bridge4.py .seen
echo tests done