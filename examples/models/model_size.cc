#include "stagecraft/examples/models/model_size.h"

#include <algorithm>
#include <cmath>

namespace stagecraft::examples {
namespace {

constexpr double kBytes = sizeof(float);

double f(std::int64_t number) {
  return static_cast<double>(number);
}

/// Counts the weights of a linear layer with biases.
double linear(double from, double to) {
  return (from + 1) * to;
}
double convolution(double from, double to, double side) {
  return (from * side * side + 1) * to;
}

/// Counts the weights of a TransformerBlock.
double block(double dim, double ffn) {
  return linear(dim, 3 * dim) + linear(dim, dim) + linear(dim, ffn) + linear(ffn, dim) + 4 * dim;
}

/// Counts the patches and the class token.
double tokens_of(std::int64_t image, std::int64_t patch) {
  const double side = f(image) / f(patch);
  return 1 + side * side;
}

double patch_embedding(std::int64_t image,
                       std::int64_t patch,
                       std::int64_t channels,
                       std::int64_t dim) {
  return convolution(f(channels), f(dim), f(patch)) + f(dim) + tokens_of(image, patch) * f(dim);
}

/// Counts the numbers that a block keeps of each token: inputs of qkv, out, up and down, and q, k,
/// v.
double kept_by_block(double dim, double ffn) {
  return 3 * dim + 3 * dim + 2 * ffn;
}

/// Calls visit(channels in, channels out, level, resamples) for each block.
template <class Visit>
void for_blocks(const UnetOptions& m, const Visit& visit) {
  double in = f(m.width);
  const auto out = [&](std::int64_t level) { return f(m.width) * std::exp2(f(level)); };
  for (std::int64_t i = 0; i < m.levels * m.blocks; ++i) {
    const std::int64_t level = i / m.blocks;
    visit(in, out(level), level, level + 1 < m.levels && (i + 1) % m.blocks == 0);
    in = out(level);
  }
  visit(in, in, m.levels - 1, false);
  for (std::int64_t i = m.levels * m.blocks - 1; i >= 0; --i) {
    const std::int64_t level = i / m.blocks;
    visit(in + out(level), out(level), level, level > 0 && i % m.blocks == 0);
    in = out(level);
  }
}

}  // namespace

double weight_bytes(const VitOptions& m) {
  const double dim = f(m.dim);
  return kBytes * (patch_embedding(m.image, m.patch, m.channels, m.dim) +
                   f(m.layers) * block(dim, f(m.ffn)) + 2 * dim + linear(dim, f(m.classes)));
}

double weight_bytes(const MoeOptions& m) {
  const double dim = f(m.dim), experts = f(m.experts);
  const double layer = 4 * dim * dim + 2 * dim + dim * experts + experts * 3 * dim * f(m.ffn);
  return kBytes * (f(m.layers) * layer + 2 * f(m.vocabulary) * dim + dim);
}

double weight_bytes(const UnetOptions& m) {
  const double width = f(m.width), channels = f(m.channels), time = 4 * width;
  double weights = convolution(channels, width, 3) + linear(width, time) + linear(time, time) +
                   2 * width + convolution(width, channels, 3);
  for_blocks(m, [&](double in, double out, std::int64_t level, bool resamples) {
    weights +=
        2 * in + 2 * out + convolution(in, out, 3) + convolution(out, out, 3) + linear(time, out);
    weights += in == out ? 0 : convolution(in, out, 1);
    weights += level + 1 < m.levels ? 0 : 2 * out + linear(out, 3 * out) + linear(out, out);
    weights += resamples ? convolution(out, out, 3) : 0;
  });
  return kBytes * weights;
}

double weight_bytes(const ClipOptions& m) {
  const double dim = f(m.dim);
  const double image = patch_embedding(m.image, m.patch, m.channels, m.dim);
  const double text = (f(m.vocabulary) + f(m.sequence)) * dim;
  const double ends = 2 * (2 * dim + dim * f(m.embed));  // norms and projections
  const double layers = f(m.image_layers) + f(m.text_layers);
  return kBytes * (image + text + layers * block(dim, f(m.ffn)) + ends + 1);
}

double least_activation_bytes(const VitOptions& m, std::int64_t samples) {
  return kBytes * f(samples) * tokens_of(m.image, m.patch) * f(m.layers) *
         kept_by_block(f(m.dim), f(m.ffn));
}

double least_activation_bytes(const MoeOptions& m, std::int64_t samples) {
  const double tokens = f(samples) * f(m.sequence), experts = f(m.experts);
  const double capacity = std::min(std::ceil(m.capacity_factor * 2 * tokens / experts), tokens);
  // As for the Llama, and the experts' inputs, intermediate values and answers; the routing, twice.
  const double attention = tokens * 10 * f(m.dim);
  const double answers = experts * capacity * (2 * f(m.dim) + 4 * f(m.ffn));
  const double routing = 2 * tokens * experts * capacity;
  const double ends = tokens * (3 * f(m.dim) + f(m.vocabulary));
  return kBytes * (f(m.layers) * (attention + answers + routing) + ends);
}

double least_activation_bytes(const UnetOptions& m, std::int64_t samples) {
  double kept = 0;
  for_blocks(m, [&](double in, double out, std::int64_t level, bool /*resamples*/) {
    const double side = f(m.image) / std::exp2(f(level));
    // The inputs of the norms and of the convolutions after them.
    kept += side * side * (2 * in + 2 * out);
  });
  return kBytes * f(samples) * kept;
}

double least_activation_bytes(const ClipOptions& m, std::int64_t samples) {
  const double tokens =
      tokens_of(m.image, m.patch) * f(m.image_layers) + f(m.sequence) * f(m.text_layers);
  return kBytes * f(samples) * tokens * kept_by_block(f(m.dim), f(m.ffn));
}

}  // namespace stagecraft::examples
