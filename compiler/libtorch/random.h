/// random gives every random operator a generator of its own, seeded by its position in the
/// training. So a draw is the same for every cut, schedule and number of workers.
#pragma once

#include <cstdint>

#include "stagecraft/compiler/libtorch/program_device.h"

namespace at {
struct Generator;
}

namespace stagecraft {

struct RandomKey {
  std::uint64_t seed = 0;
  std::int64_t step = 0;
  std::int64_t microbatch = 0;
  /// The number OtherShape::random of the microbatch; 0 for the sizes of the example batch.
  std::uint64_t shape = 0;
};

/// Returns the seed to use if the caller gives none: that of LibTorch's default generator, as
/// torch::manual_seed set it last. Draws nothing from it.
[[nodiscard]] std::uint64_t default_seed();

/// Returns the seed of random operator number `index` of the graph under `key`.
[[nodiscard]] std::uint64_t random_seed(const RandomKey& key, int index);

/// Returns a new generator for that operator, of the device on which it runs.
[[nodiscard]] at::Generator make_generator(const RandomKey& key,
                                           int index,
                                           const c10::Device& device = kProgramDevice);

}  // namespace stagecraft
