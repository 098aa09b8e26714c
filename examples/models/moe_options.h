/// MoeOptions says how large a mixture of experts is, and how it is cut.
///
/// It is separate from the model, which includes LibTorch's modules.
#pragma once

#include <cstdint>

namespace stagecraft::examples {

struct MoeOptions {
  std::int64_t vocabulary = 256;
  std::int64_t layers = 4;
  std::int64_t dim = 128;
  std::int64_t heads = 4;  ///< divides dim; dim / heads is even (the rotary embedding turns pairs)
  std::int64_t ffn = 344;  ///< width of the SwiGLU of each expert
  std::int64_t experts = 4;  ///< of each layer, at least 2
  /// An expert takes this many times its even share of a microbatch's choices, two per token.
  double capacity_factor = 1.25;
  double balance = 0.01;       ///< weight of the load-balance loss
  std::int64_t sequence = 64;  ///< tokens per sequence, fixed
  std::int64_t stages = 4;     ///< at most `layers`
  std::uint64_t seed = 0;
};

}  // namespace stagecraft::examples
