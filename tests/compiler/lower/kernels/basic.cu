// Kernels of everyday shapes for test_cuda.py.

extern "C" __global__ void vadd(const float *__restrict__ a, const float *__restrict__ b, float *c, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n)
        c[i] = a[i] + b[i];
}

#define T 16

extern "C" __global__ void matmul(const float *A, const float *B, float *C, int n) {
    __shared__ float As[T][T], Bs[T][T];
    int x = threadIdx.x, y = threadIdx.y;
    int col = blockIdx.x * T + x, row = blockIdx.y * T + y;
    float s = 0;
    for (int t = 0; t < n; t += T) {
        As[y][x] = A[row * n + t + x];
        Bs[y][x] = B[(t + y) * n + col];
        __syncthreads();
        for (int k = 0; k < T; k++)
            s += As[y][k] * Bs[k][x];
        __syncthreads();
    }
    C[row * n + col] = s;
}

extern "C" __global__ void reduce(const float *a, float *o, int n) {
    extern __shared__ float sm[];
    int t = threadIdx.x;
    float v = 0;
    for (int i = blockIdx.x * blockDim.x + t; i < n; i += gridDim.x * blockDim.x)
        v += a[i];
    for (int d = 16; d; d >>= 1)
        v += __shfl_down_sync(~0u, v, d);
    if ((t & 31) == 0)
        sm[t >> 5] = v;
    __syncthreads();
    if (t == 0) {
        float s = 0;
        for (int i = 0; i < blockDim.x / 32; i++)
            s += sm[i];
        atomicAdd(o, s);
    }
}

struct S {
    float *p;
    int n;
    double d;
    short q[3];
    float arr[5];
};

__device__ __noinline__ double helper(S s, int i) { return s.d * s.p[i] + s.q[i % 3] + s.arr[i % 5]; }

extern "C" __global__ void structs(S s, double *o) {
    int i = threadIdx.x;
    if (i < s.n)
        o[i] = helper(s, i);
}

__constant__ int table[8] = {1, 2, 3, 4, 5, 6, 7, 8};
__device__ float g = 3.5f;
__device__ int *gp = (int *)&table[2];

struct R {
    int a;
    float b;
    double c;
};

__device__ __noinline__ R mk(int i) {
    R r;
    r.a = i;
    r.b = i * 0.5f;
    r.c = i * i;
    return r;
}

__device__ __noinline__ int fact(int n) { return n < 2 ? 1 : n * fact(n - 1); }

extern "C" __global__ void misc(int *o, int which) {
    int i = threadIdx.x;
    int loc[16];
    for (int k = 0; k < 16; k++)
        loc[k] = k * i;
    switch (i) {
    case 0:
        o[i] = table[i];
        break;
    case 1:
        o[i] = g;
        break;
    case 2:
        o[i] = *gp;
        break;
    case 3:
        o[i] = loc[which];
        break;
    case 4: {
        R r = mk(i);
        o[i] = r.a + r.b + r.c;
    } break;
    case 5:
        o[i] = fact(which);
        break;
    case 6:
        o[i] = which * 7;
        break;
    case 7:
        o[i] = which / 3;
        break;
    default:
        o[i] = -1;
    }
}
