/// Sharing says what the copies of a bucket share: each of n ranks keeps an n-th of it. A level has
/// all that the levels before it have.
/// Source: Rajbhandari et al., ZeRO: Memory Optimizations Toward Training Trillion Parameter
///         Models, section 5.
#pragma once

#include <cstdint>

namespace stagecraft {

enum class Sharing : std::uint8_t {
  Nothing,
  States,     ///< the optimizer's state: a rank gets its part of the sum of gradients alone, and
              ///< gathers the weights that all have updated (ZeRO-1)
  Gradients,  ///< the sums of gradients: they are reduced in rounds, and the memory of the whole
              ///< gradients is given back after each (ZeRO-2)
  Weights,    ///< the weights: they are gathered before the tasks that use them, and given back
              ///< after these (ZeRO-3)
};

/// The bytes of a bucket where gradients or weights are shared and nobody chose a size, as in
/// PyTorch's data parallelism.
inline constexpr std::int64_t kUsualBucketBytes = 25 << 20;

}  // namespace stagecraft
