kernel void tiny(global int *p, int a, int b)
{
    p[get_global_id(0)] = a + b;
}

kernel void vector_add(global const float *a, global const float *b, global float *c, int n)
{
    size_t i = get_global_id(0);
    if (i < (size_t)n)
        c[i] = a[i] + b[i];
}

#define TILE 16
kernel void matmul(global const float *a, global const float *b, global float *c, int n)
{
    local float ta[TILE][TILE], tb[TILE][TILE];
    size_t x = get_local_id(0), y = get_local_id(1);
    size_t column = get_group_id(0) * TILE + x, row = get_group_id(1) * TILE + y;
    float sum = 0.0f;
    for (int t = 0; t < n / TILE; t++) {
        ta[y][x] = a[row * n + t * TILE + x];
        tb[y][x] = b[(t * TILE + y) * n + column];
        barrier(CLK_LOCAL_MEM_FENCE);
        for (int k = 0; k < TILE; k++)
            sum += ta[y][k] * tb[k][x];
        barrier(CLK_LOCAL_MEM_FENCE);
    }
    c[row * n + column] = sum;
}
