// Functions marked with this are compiled for several instruction sets and chosen when the library is loaded, so that one
// binary runs everywhere and uses AVX2 or AVX-512 where they exist. Sanitizers do not get along with the resolvers.
#pragma once

#if defined(__x86_64__) && defined(__GNUC__) && !defined(__clang__) && !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
#define TREEWARD_VECTOR_CLONES __attribute__((target_clones("arch=x86-64-v4", "arch=x86-64-v3", "default")))
#else
#define TREEWARD_VECTOR_CLONES
#endif
