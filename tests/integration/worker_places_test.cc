/// Tests what a rank's place changes: the work that may run there, and the tensors that go through
/// the driver. tests/tools/schedule/every_schedule_test.cc compares the bits for every builder.
#include <atomic>
#include <filesystem>
#include <fstream>
#include <map>
#include <memory>
#include <set>
#include <sstream>
#include <string>

#include <torch/torch.h>

#include "stagecraft/actors/launch/launcher.h"
#include "stagecraft/stagecraft.h"
#include "stagecraft/tests/support/catch.h"
#include "stagecraft/tests/support/modules.h"

namespace stagecraft::tests {
namespace {

using Catch::Matchers::ContainsSubstring;
using testing::mean_square;
using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

constexpr int kMicrobatches = 4;
constexpr std::int64_t kPlacedRows = 32;

struct Doubled : torch::autograd::Function<Doubled> {
  static torch::Tensor forward(AutogradContext*, torch::Tensor x) { return x * 2; }
  static variable_list backward(AutogradContext*, variable_list g) { return {g[0] * 2}; }
};

/// Has two stages, both with user code that no other process has.
struct Attached : torch::nn::Module {
  torch::nn::Linear a{register_module("a", torch::nn::Linear(1, 8))};
  torch::nn::Linear b{register_module("b", torch::nn::Linear(8, 1))};
  std::shared_ptr<std::atomic<int>> calls = std::make_shared<std::atomic<int>>(0);

  torch::Tensor forward(torch::Tensor x) {
    const torch::Tensor h = stage("lower", [&] {
      const torch::Tensor y = torch::tanh(a(x));
      y.register_hook([counter = calls](torch::Tensor) { ++*counter; });
      return y;
    });
    return stage("upper", [&] { return b(Doubled::apply(h)); });
  }
};

/// Has one column in and out, and `width` columns from stage to stage.
struct Wide : torch::nn::Module {
  torch::nn::Linear a, b, c;
  explicit Wide(std::int64_t width)
      : a(register_module("a", torch::nn::Linear(1, width))),
        b(register_module("b", torch::nn::Linear(width, width))),
        c(register_module("c", torch::nn::Linear(width, 1))) {}

  torch::Tensor forward(torch::Tensor x) {
    const torch::Tensor h = stage("in", [&] { return torch::tanh(a(x)); });
    const torch::Tensor k = stage("across", [&] { return torch::tanh(b(h)); });
    return stage("out", c, k);
  }
};

torch::Tensor column() {
  return torch::linspace(-1.0, 1.0, kPlacedRows).unsqueeze(1);
}

template <class Module>
Program compiled(Module& module) {
  return compile(module,
                 {.inputs = {column()},
                  .labels = {column()},
                  .loss = mean_square,
                  .microbatches = kMicrobatches});
}

Trainer trainer_on(const Cluster& cluster, const Program& program, TrainerOptions options = {}) {
  return {cluster,
          program,
          one_f_one_b(program.stage_graph(), kMicrobatches),
          Sgd{.lr = 0.1},
          std::move(options)};
}

std::string refusal_to_start(const Cluster& cluster,
                             const Program& program,
                             TrainerOptions options = {}) {
  try {
    (void)trainer_on(cluster, program, std::move(options));
  } catch (const Error& error) {
    CHECK(error.code() == Errc::UsageArgument);
    return error.what();
  }
  return "it was taken";
}

TEST_CASE("hooks and custom functions are refused by name before a worker process is started",
          "[integration][processes][refusals]") {
  Attached module;
  const Program program = compiled(module);
  const Cluster processes = Cluster::spawn(2);
  CHECK_THAT(refusal_to_start(processes, program),
             ContainsSubstring("rank 0: stage \"lower\" has 1 hook on %") &&
                 ContainsSubstring("rank 1: stage \"upper\" has custom function") &&
                 ContainsSubstring("Doubled") && ContainsSubstring("Cluster::local"));
  for (const WorkerPlace& place : processes.workers()) {
    CHECK(place.process == 0);
  }

  const Cluster mixed = Cluster::spawn(2, {.local_ranks = 1});
  CHECK_THAT(refusal_to_start(mixed, program),
             ContainsSubstring("stage \"upper\"") && !ContainsSubstring("stage \"lower\""));

  Trainer trainer = trainer_on(Cluster::local(2), program);
  const int before = *module.calls;
  CHECK(trainer.step({column()}, {column()}).get().step == 1);
  CHECK(*module.calls == before + kMicrobatches);
}

TEST_CASE("a function that ranks are to call is refused where they are processes",
          "[integration][processes][refusals]") {
  Wide module(4);
  const TrainerOptions options{.before_instruction = [](Rank, const Instruction&) {}};
  CHECK_THAT(refusal_to_start(Cluster::spawn(3), compiled(module), options),
             ContainsSubstring("rank 2: the options have before_instruction"));
}

/// Returns the bytes of tensors between the driver and all others, in both directions.
std::int64_t driver_bytes(const Cluster& cluster) {
  std::int64_t bytes = 0;
  for (const auto& [peer, link] : cluster.launcher()->traffic().links) {
    bytes += link.bytes_sent + link.bytes_received;
  }
  return bytes;
}

/// Returns the TCP ports at the other ends of a process's connections.
std::set<int> remote_ports(std::int64_t process) {
  namespace fs = std::filesystem;
  const fs::path here = "/proc/" + std::to_string(process);
  std::set<std::string> sockets;
  for (const auto& entry : fs::directory_iterator(here / "fd")) {
    std::error_code gone;
    sockets.insert(fs::read_symlink(entry.path(), gone).string());
  }
  std::set<int> ports;
  std::ifstream table(here / "net/tcp");
  for (std::string line; std::getline(table, line);) {
    std::istringstream words(line);
    std::string number, local, remote, state, skipped, inode;
    words >> number >> local >> remote >> state;
    for (int i = 0; i < 5; ++i) {
      words >> skipped;
    }
    words >> inode;
    if (state == "01" && sockets.contains("socket:[" + inode + "]")) {  // established
      ports.insert(std::stoi(remote.substr(remote.find(':') + 1), nullptr, 16));
    }
  }
  return ports;
}

/// Returns, by rank, the workers to whose data ports its worker has connected.
std::map<int, std::set<int>> data_links(const Cluster& cluster) {
  std::map<int, int> rank_of;  // by port
  for (const WorkerPlace& worker : cluster.workers()) {
    rank_of[std::stoi(worker.address.substr(worker.address.rfind(':') + 1))] = worker.rank.value;
  }
  std::map<int, std::set<int>> links;
  for (const WorkerPlace& worker : cluster.workers()) {
    for (const int port : remote_ports(worker.process)) {
      if (rank_of.contains(port)) {
        links[worker.rank.value].insert(rank_of[port]);
      }
    }
  }
  return links;
}

TEST_CASE("workers connect to those that they send tensors to, and to no others (DP-5)",
          "[integration][processes]") {
  const Cluster cluster = Cluster::spawn(3);
  Wide module(4);
  const Program program = compiled(module);
  Trainer trainer = trainer_on(cluster, program);
  CHECK(data_links(cluster).empty());
  (void)trainer.evaluate({column()}, {column()});
  CHECK(data_links(cluster) == std::map<int, std::set<int>>{{0, {1}}, {1, {2}}});
  (void)trainer.step({column()}, {column()}).get();  // gradients go back, and all vote (VO-2)
  CHECK(data_links(cluster) == std::map<int, std::set<int>>{{0, {1, 2}}, {1, {0, 2}}, {2, {0, 1}}});
}

TEST_CASE("tensors between two workers do not go through the driver", "[integration][processes]") {
  const Cluster cluster = Cluster::spawn(3);
  std::map<std::int64_t, std::int64_t> bytes_per_step;  // by width
  for (const std::int64_t width : {1, 512}) {
    Wide module(width);
    const Program program = compiled(module);
    Trainer trainer = trainer_on(cluster, program);
    (void)trainer.step({column()}, {column()}).get();
    const std::int64_t before = driver_bytes(cluster);
    (void)trainer.step({column()}, {column()}).get();
    bytes_per_step[width] = driver_bytes(cluster) - before;
  }
  const std::int64_t batch = 2 * kPlacedRows * 4;  // inputs and labels, of four bytes each
  CHECK(bytes_per_step[1] == batch);
  // Between ranks, two edges carry 512 columns each way, which are 256 KiB.
  CHECK(bytes_per_step[512] == bytes_per_step[1]);
}

}  // namespace
}  // namespace stagecraft::tests
