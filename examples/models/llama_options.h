/// LlamaOptions says how large a Llama is, and how it is cut.
///
/// It is separate from the model, which includes LibTorch's modules.
#pragma once

#include <cstdint>

namespace stagecraft::examples {

struct LlamaOptions {
  std::int64_t vocabulary = 256;
  std::int64_t layers = 4;
  std::int64_t dim = 128;
  std::int64_t heads = 4;  ///< divides dim; dim / heads is even (the rotary embedding turns pairs)
  std::int64_t ffn = 344;  ///< width of the SwiGLU
  std::int64_t sequence = 64;  ///< tokens per sequence, fixed
  std::int64_t stages = 4;     ///< at most `layers`
  std::uint64_t seed = 0;
};

}  // namespace stagecraft::examples
