/// Where random operators draw from: a generator of their own, seeded by where in the training they
/// stand. So a draw is the same whatever the cut, the schedule or the number of workers.
#pragma once

#include <cstdint>

namespace at {
struct Generator;
}

namespace stagecraft {

struct RandomKey {
  std::uint64_t seed = 0;
  std::int64_t step = 0;
  std::int64_t microbatch = 0;
  std::uint64_t shape = 0;  ///< Variant::random of the microbatch; 0: sizes of the example batch
};

/// Where nobody gives a seed: that of LibTorch's default CPU generator, as torch::manual_seed set
/// it last. Draws nothing from it.
[[nodiscard]] std::uint64_t default_seed();

/// The seed of random operator number `index` of the graph under `key`.
[[nodiscard]] std::uint64_t random_seed(const RandomKey& key, int index);

/// A fresh CPU generator for that operator.
[[nodiscard]] at::Generator make_generator(const RandomKey& key, int index);

}  // namespace stagecraft
