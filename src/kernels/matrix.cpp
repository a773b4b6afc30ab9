#include "kernels/matrix.h"

extern "C" {
/// c = alpha·op(a)·op(b) + beta·c, column-major (BLAS, level 3).
void sgemm_(const char* transpose_a, const char* transpose_b, const int* m, const int* n, const int* k,
            const float* alpha, const float* a, const int* a_step, const float* b, const int* b_step, const float* beta,
            float* c, const int* c_step);
}

namespace gradflow {
namespace {

/// A row-major matrix [rows, columns] is a column-major [columns, rows] with the same step.
void product(char transpose_a, char transpose_b, std::size_t m, std::size_t n, std::size_t k, const float* a,
             std::size_t a_step, const float* b, std::size_t b_step, float beta, float* c, std::size_t c_step) {
  const int sizes[] = {static_cast<int>(m),      static_cast<int>(n),      static_cast<int>(k),
                       static_cast<int>(a_step), static_cast<int>(b_step), static_cast<int>(c_step)};
  const float one = 1;
  sgemm_(&transpose_a, &transpose_b, &sizes[0], &sizes[1], &sizes[2], &one, a, &sizes[3], b, &sizes[4], &beta, c,
         &sizes[5]);
}

}  // namespace

void linear(const LinearShape& s, const float* x, const float* weight, float* y) {
  product('T', 'N', s.out, s.rows, s.in, weight, s.in, x, s.x_step, 0, y, s.y_step);
}

void linear_input_gradient(const LinearShape& s, const float* dy, const float* weight, float* dx, bool add) {
  product('N', 'N', s.in, s.rows, s.out, weight, s.in, dy, s.y_step, add ? 1 : 0, dx, s.x_step);
}

void add_weight_gradient(const LinearShape& s, const float* dy, const float* x, float* weight_gradient) {
  product('N', 'T', s.in, s.out, s.rows, x, s.x_step, dy, s.y_step, 1, weight_gradient, s.in);
}

}  // namespace gradflow
