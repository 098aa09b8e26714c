/// Tests the simulated device: it computes as the CPU does, and a wait that is missing is found.
#include <thread>

#include <c10/core/StreamGuard.h>
#include <c10/core/impl/VirtualGuardImpl.h>
#include <torch/torch.h>

#include "stagecraft/compiler/libtorch/same_bits.h"
#include "stagecraft/tests/sim/sim_devices.h"
#include "stagecraft/tests/support/catch.h"

namespace stagecraft::tests {
namespace {

using Catch::Matchers::ContainsSubstring;

/// Returns loss and gradients of two layers.
std::vector<at::Tensor> train(at::Device device) {
  torch::manual_seed(1);
  std::vector<at::Tensor> weights{at::randn({64, 32}), at::randn({64}), at::randn({8, 64})};
  const at::Tensor x = at::randn({16, 32}).to(device);
  const at::Tensor y = at::randn({16, 8}).to(device);
  for (at::Tensor& weight : weights) {
    weight = weight.to(device).set_requires_grad(true);
  }
  const at::Tensor hidden = at::gelu(at::linear(x, weights[0], weights[1]));
  const at::Tensor loss = at::mse_loss(at::linear(hidden, weights[2]), y);
  loss.backward();
  std::vector<at::Tensor> made{loss.detach()};
  for (const at::Tensor& weight : weights) {
    made.push_back(weight.grad());
  }
  return made;
}

TEST_CASE("a backward has the bits of the CPU, whatever the streams' delays", "[sim]") {
  const unsigned seed = GENERATE(1U, 2U, 3U);
  const SimDevices devices({.most_delay = std::chrono::microseconds(300), .seed = seed});
  const std::vector<at::Tensor> expected = train(at::kCPU);
  const std::int64_t waits = devices.host_waits();
  std::vector<at::Tensor> made;
  SECTION("on the default stream") {
    made = train(devices.device(static_cast<int>(seed % 2)));
    CHECK(devices.host_waits() == waits + 5);  // for the five tensors from the CPU
  }
  SECTION("on another stream, from a thread of its own") {
    std::thread([&] {
      const c10::StreamGuard on(devices.new_stream(0));
      made = train(devices.device(0));
      devices.finish();
    }).join();
    SimDevices::finish();  // what that thread has seen, this one has not
  }
  REQUIRE(made.size() == expected.size());
  for (std::size_t i = 0; i < made.size(); ++i) {
    CHECK(same_bits(made[i].cpu(), expected[i]));
  }
  CHECK(devices.take_reports().empty());
}

/// Rank 0 computes on device 0 and rank 1 on device 1, which gets its tensors by a stream between.
at::Tensor two_ranks(const SimDevices& devices, bool waits, bool keeps) {
  const c10::impl::VirtualGuardImpl impl(sim::kType);
  const c10::Stream link = devices.new_stream(0);
  torch::manual_seed(2);
  const at::Tensor x = at::randn({64, 64});
  const at::Tensor a = x.to(devices.device(0));
  const at::Tensor b = x.to(devices.device(1));
  at::Tensor sum = at::zeros({64, 64}, devices.device(1));
  for (int microbatch = 0; microbatch < 4; ++microbatch) {
    at::Tensor made = at::tanh(a.mm(a)) * (microbatch + 1);
    c10::Event ready(sim::kType);
    ready.record(impl.getStream(devices.device(0)));
    const at::Tensor received = at::empty({64, 64}, at::TensorOptions(devices.device(1)));
    {
      const c10::StreamGuard on(link);
      if (waits) {
        ready.block(link);
      }
      received.copy_(made, /*non_blocking=*/true);
    }
    if (keeps) {
      made.record_stream(link);
    }
    made = at::Tensor();
    sum = sum + received.mm(b);
  }
  return sum;
}

TEST_CASE("a wait or a record_stream that is missing is found in every run", "[sim]") {
  for (int run = 0; run < 5; ++run) {
    SimDevices devices({.most_delay = std::chrono::microseconds(100)});
    (void)two_ranks(devices, true, true);
    CHECK(devices.take_reports().empty());
    (void)two_ranks(devices, false, true);
    CHECK_THAT(devices.take_reports().at(0), ContainsSubstring("copy_ (reads, sim:0 stream"));
    (void)two_ranks(devices, true, false);
    CHECK_THAT(devices.take_reports().at(0), ContainsSubstring("nothing keeps for copy_"));
  }
}

TEST_CASE("memory beyond a device's is refused, and it stays usable", "[sim]") {
  SimDevices devices({.memory = 1 << 20});
  const auto on_device = at::TensorOptions(devices.device(0));
  CHECK_THROWS_AS(at::empty({1 << 20}, on_device), c10::OutOfMemoryError);
  CHECK(at::ones({4}, on_device).sum().item<float>() == 4);
}

TEST_CASE("a tensor of the CPU among those of a device is refused", "[sim][bad-input]") {
  SimDevices devices;
  const at::Tensor here = at::ones({2});
  const at::Tensor there = here.to(devices.device(0));
  CHECK_THROWS_WITH(there + here, ContainsSubstring("to be on the same device"));
  CHECK_THROWS_WITH(there + here.to(devices.device(1)),
                    ContainsSubstring("to be on the same device"));
}

}  // namespace
}  // namespace stagecraft::tests
