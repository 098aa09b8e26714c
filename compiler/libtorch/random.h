/// random gives every random operator a generator of its own, seeded by its position in the
/// training. So a draw is the same for every cut, schedule and number of workers.
///
/// A loader draws from LibTorch's default generator. A capture runs the module, which draws too,
/// and then sets this generator back. One mutex of the process keeps a capture from setting back
/// what a loader has drawn for an epoch on another thread (DefaultRandomTurn).
#pragma once

#include <cstdint>
#include <mutex>
#include <string>

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

/// Returns the state of LibTorch's default CPU generator.
[[nodiscard]] std::string default_random_state();
/// Sets it. Errors: CheckpointFormat for bytes that are no such state.
void set_default_random_state(const std::string& state);

/// DefaultRandomTurn is held by a thread while captures and beginnings of epochs on other threads
/// wait. A thread may hold several.
class DefaultRandomTurn {
 public:
  DefaultRandomTurn();

 private:
  std::unique_lock<std::recursive_mutex> lock_;
};

}  // namespace stagecraft
