#include "stagecraft/compiler/libtorch/random.h"

#include <cstring>
#include <exception>

#include <ATen/core/Generator.h>
#include <ATen/core/Tensor.h>
#include <ATen/ops/empty.h>

#include "stagecraft/base/error.h"
#include "stagecraft/compiler/libtorch/program_device.h"

namespace stagecraft {
namespace {

/// Does one round of a 64-bit finalizer (Steele, Lea and Flood, "Fast splittable pseudorandom
/// number generators", OOPSLA 2014).
std::uint64_t mix(std::uint64_t state, std::uint64_t word) {
  std::uint64_t z = state + 0x9e3779b97f4a7c15ULL + word;
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ULL;
  z = (z ^ (z >> 27)) * 0x94d049bb133111ebULL;
  return z ^ (z >> 31);
}

}  // namespace

std::uint64_t default_seed() {
  at::Generator generator = default_generator();
  const std::scoped_lock lock(generator.mutex());
  return generator.current_seed();
}

std::uint64_t random_seed(const RandomKey& key, int index) {
  std::uint64_t seed = mix(0, key.seed);
  seed = mix(seed, static_cast<std::uint64_t>(key.step));
  seed = mix(seed, static_cast<std::uint64_t>(key.microbatch));
  if (key.shape != 0) {
    seed = mix(seed, key.shape);
  }
  return mix(seed, static_cast<std::uint64_t>(index));
}

at::Generator make_generator(const RandomKey& key, int index, const c10::Device& device) {
  return seeded_generator(random_seed(key, index), device);
}

std::string default_random_state() {
  at::Generator generator = default_generator();
  const std::scoped_lock lock(generator.mutex());
  const at::Tensor state = generator.get_state();
  return {static_cast<const char*>(state.const_data_ptr()), state.nbytes()};
}

void set_default_random_state(const std::string& state) {
  const at::Tensor bytes = at::empty({static_cast<std::int64_t>(state.size())}, at::kByte);
  std::memcpy(bytes.mutable_data_ptr(), state.data(), state.size());
  at::Generator generator = default_generator();
  const std::scoped_lock lock(generator.mutex());
  try {
    generator.set_state(bytes);
  } catch (const std::exception& error) {
    throw Error(Errc::CheckpointFormat,
                "the state of the random numbers in the checkpoint is none of this LibTorch: use "
                "the LibTorch that wrote it")
        .because(Error(Errc::CheckpointFormat, error.what()));
  }
}

DefaultRandomTurn::DefaultRandomTurn()
    : lock_([]() -> std::recursive_mutex& {
        static std::recursive_mutex mutex;
        return mutex;
      }()) {}

}  // namespace stagecraft
