// Calls through pointers for test_cuda.py.

typedef int (*F)(int, int);

__device__ __noinline__ int fa(int a, int b) { return a + b; }

__device__ __noinline__ int fb(int a, int b) { return a * b - 1; }

__device__ __noinline__ int fc(int a, int b) { return a ^ b; }

__device__ F table[3] = {fa, fb, fc};

struct Base {
    __device__ virtual float f(float x) const { return x; }

    __device__ virtual ~Base() {}
};

struct D1 : Base {
    float k;

    __device__ D1(float k) : k(k) {}

    __device__ float f(float x) const override { return x * k; }
};

struct D2 : Base {
    float k;

    __device__ D2(float k) : k(k) {}

    __device__ float f(float x) const override { return x + k; }
};

__device__ __noinline__ float use(const Base *b, float x) { return b->f(x); }

extern "C" __global__ void by_pointer(int *o, const int *sel) {
    int t = threadIdx.x;
    F f = table[sel[t] % 3];
    o[t] = f(t, 5);
}

extern "C" __global__ void virtual_calls(float *o, const int *sel) {
    int t = threadIdx.x;
    D1 a(3);
    D2 b(7);
    Base c;
    const Base *p = sel[t] % 3 == 0 ? (Base *)&a : sel[t] % 3 == 1 ? (Base *)&b : &c;
    o[t] = use(p, t);
}

extern "C" __global__ void asserts(int *o, int n) {
    if (n > 100)
        __assertfail("n", "f", 3, "g", 1);
    o[threadIdx.x] = n;
}
