#include "data/entropy.h"

#include <cmath>

namespace gradflow {

double entropy(std::span<const double> weights) {
  double total = 0;
  for (const double weight : weights) total += weight;
  double sum = 0;
  for (const double weight : weights)
    if (weight > 0) sum -= weight / total * std::log(weight / total);
  return sum;
}

}  // namespace gradflow
