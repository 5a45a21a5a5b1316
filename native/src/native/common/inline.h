// Inlining that speed counts on. Sanitised builds leave it to the compiler: with it they take three times as long to compile.
#pragma once

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define TREEWARD_INLINE inline
#else
#define TREEWARD_INLINE inline __attribute__((always_inline))
#endif

// The same for what host and device share.
#ifdef __CUDACC__
#define TREEWARD_HD __host__ __device__ __forceinline__
#else
#define TREEWARD_HD TREEWARD_INLINE
#endif
