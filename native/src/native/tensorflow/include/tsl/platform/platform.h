// Stands in for TensorFlow's header, which tensorflow/c/kernels.h includes to learn whether the platform is a phone.
#pragma once
