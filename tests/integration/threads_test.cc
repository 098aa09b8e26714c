/// Tests pools of threads: none stays on the program's own threads, and no thread count is changed.
#include <filesystem>
#include <thread>

#include <torch/torch.h>

#include "stagecraft/tests/integration/models.h"
#include "stagecraft/tests/support/catch.h"
#include "stagecraft/tests/support/waiting.h"

namespace stagecraft::tests {
namespace {

constexpr std::int64_t kWideLayer =
    512;  // its matrices are large enough for LibTorch to split them in parts

struct WideLinear : torch::nn::Module {
  torch::nn::Linear a{register_module("a", torch::nn::Linear(kWideLayer, kWideLayer))};
  torch::nn::Linear b{register_module("b", torch::nn::Linear(kWideLayer, kWideLayer))};
  torch::Tensor forward(torch::Tensor x) {
    x = stage("a", [&] { return torch::tanh(a(x)); });
    return stage("b", [&] { return b(x); });
  }
};

std::ptrdiff_t threads_of_this_process() {
  return std::distance(std::filesystem::directory_iterator("/proc/self/task"), {});
}

/// A joined thread may be listed for a moment longer.
bool runs_so_many_threads(std::ptrdiff_t count) {
  return eventually([&] { return threads_of_this_process() == count; });
}

/// Runs `work` on a thread that has no pool yet and would make one of two.
template <class Work>
void on_a_thread_of_two(Work&& work) {
  std::thread([&] {
    (void)at::get_num_threads();
    at::set_num_threads(2);
    work();
  }).join();
  at::set_num_threads(1);
}

Program compile_wide(const torch::Tensor& x) {
  return compile(std::make_shared<WideLinear>(),
                 {.inputs = {x},
                  .labels = {x},
                  .loss = [](torch::Tensor o, torch::Tensor y) { return (o - y).pow(2).mean(); },
                  .microbatches = 2});
}

TEST_CASE("an operator of this size makes a pool where one may be made",
          "[integration][threads][alone]") {
  on_a_thread_of_two([] {
    const auto before = threads_of_this_process();
    (void)torch::ones({kWideLayer, kWideLayer}).matmul(torch::ones({kWideLayer, kWideLayer}));
    CHECK(threads_of_this_process() > before);
  });
}

TEST_CASE("compiling and training leave no pool on the program's own thread",
          "[integration][threads][alone]") {
  const auto x = torch::ones({kWideLayer, kWideLayer});
  on_a_thread_of_two([&] {
    const auto before = threads_of_this_process();
    const Program program = compile_wide(x);
    CHECK(runs_so_many_threads(before));
    Cluster cluster = Cluster::local(2);
    Trainer trainer(cluster, program, gpipe(program.stage_graph(), 2), Sgd{.lr = 0.1});
    (void)trainer.step({x}, {x}).get();
    const auto with_workers = threads_of_this_process();
    (void)trainer.step({x}, {x}).get();
    (void)trainer.evaluate({x}, {x});
    (void)trainer.state_dict();
    CHECK(runs_so_many_threads(with_workers));
    CHECK(with_workers <= before + 2 + 8);  // the ranks', and those of the actor system
  });
}

TEST_CASE("compiling and training change the thread count of nobody else",
          "[integration][threads][alone]") {
  const auto x = torch::ones({kWideLayer, kWideLayer});
  const auto count_of_a_new_thread = [] {
    int count = 0;
    std::thread([&] { count = at::get_num_threads(); }).join();
    return count;
  };
  on_a_thread_of_two([&] {
    at::set_num_threads(3);
    const Program program = compile_wide(x);
    CHECK(at::get_num_threads() == 3);
    CHECK(count_of_a_new_thread() == 3);
    Cluster cluster = Cluster::local(2);
    Trainer trainer(cluster, program, gpipe(program.stage_graph(), 2), Sgd{.lr = 0.1});
    Reference reference(program, Sgd{.lr = 0.1}, {.threads = 2});
    (void)trainer.step({x}, {x}).get();
    (void)reference.step({x}, {x});
    CHECK(at::get_num_threads() == 3);
    CHECK(count_of_a_new_thread() == 3);
  });
}

}  // namespace
}  // namespace stagecraft::tests
