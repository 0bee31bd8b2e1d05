extern "C" __global__ void tiny(int *p, int a, int b)
{
    p[blockIdx.x * blockDim.x + threadIdx.x] = a + b;
}

extern "C" __global__ void vector_add(const float *a, const float *b, float *c, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n)
        c[i] = a[i] + b[i];
}

#define TILE 16
extern "C" __global__ void matmul(const float *a, const float *b, float *c, int n)
{
    __shared__ float ta[TILE][TILE], tb[TILE][TILE];
    int x = threadIdx.x, y = threadIdx.y;
    int column = blockIdx.x * TILE + x, row = blockIdx.y * TILE + y;
    float sum = 0.0f;
    for (int t = 0; t < n / TILE; t++) {
        ta[y][x] = a[row * n + t * TILE + x];
        tb[y][x] = b[(t * TILE + y) * n + column];
        __syncthreads();
        for (int k = 0; k < TILE; k++)
            sum += ta[y][k] * tb[k][x];
        __syncthreads();
    }
    c[row * n + column] = sum;
}
