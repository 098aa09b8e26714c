/// Tests the bill of a run: the figures known before the model is built must match the model.

#include "stagecraft/tools/train/job/memory_bill.h"

#include <algorithm>
#include <sstream>

#include "stagecraft/base/error.h"
#include "stagecraft/examples/models/llama.h"
#include "stagecraft/tests/support/catch.h"
#include "stagecraft/tests/support/command.h"
#include "stagecraft/tools/train/job/job.h"
#include "stagecraft/tools/train/options/parse_options.h"

namespace stagecraft::tools {
namespace {

using Catch::Matchers::ContainsSubstring;
using Time = MemoryLine::Time;

examples::LlamaOptions sizes(std::int64_t layers, std::int64_t dim, std::int64_t ffn) {
  return {.vocabulary = 61,
          .layers = layers,
          .dim = dim,
          .heads = 2,
          .ffn = ffn,
          .sequence = 24,
          .stages = 1};
}

TrainJob job_of(std::vector<std::string> words) {
  words.insert(words.end(), {"--dim", "64", "--heads", "2", "--ffn", "96", "--layers", "4"});
  std::istringstream in;
  std::ostringstream out, err;
  Console console{in, out, err};
  const TrainOptions options = std::get<TrainOptions>(parse_train_options(words));
  return make_job(options, find_start(options, console), console);
}

double bytes_at(const MemoryBill& bill, Time time) {
  double bytes = 0.0;
  for (const MemoryLine& line : bill.lines()) {
    bytes += line.time == time ? line.bytes : 0.0;
  }
  return bytes;
}

}  // namespace

TEST_CASE("sizes that no 64-bit number holds stay sizes", "[tools][memory]") {
  const examples::LlamaOptions model = sizes(2147483647, 2147483646, 2147483647);
  CHECK(weight_bytes(model) > 1e29);
  CHECK(least_activation_bytes(model, 2147483647) > 1e29);
}

TEST_CASE("mirrors are paid for, and kept where memory suffices", "[tools][memory][restarts]") {
  const std::vector<std::string> two{"--ranks", "2", "--workers", "processes"};
  const auto job = [&](std::vector<std::string> more) {
    more.insert(more.end(), two.begin(), two.end());
    return job_of(std::move(more));
  };
  const TrainJob plain = job({}), usual = job({"--restarts", "1"}),
                 without = job({"--restarts", "1", "--mirror", "no"});
  CHECK_FALSE(plain.mirrors);
  CHECK(usual.mirrors);
  CHECK_FALSE(without.mirrors);
  double state = 0.0;
  for (const RankMemory& rank : plain.ranks) {
    state += static_cast<double>(rank.weights + rank.states);
  }
  CHECK(usual.memory.to_run() - plain.memory.to_run() == 4 * state);
  CHECK(without.memory.to_run() == plain.memory.to_run());
  // A limit between the two bills: the run goes without, or does not fit if it must have them.
  const double between = plain.memory.to_run() + 2 * state;
  CHECK(plain.memory.fits({{.who = "a test", .bytes = between}}));
  CHECK_FALSE(usual.memory.fits({{.who = "a test", .bytes = between}}));
  // One rank has no neighbor.
  CHECK_FALSE(job_of({"--ranks", "1", "--workers", "processes", "--restarts", "1"}).mirrors);
}

TEST_CASE("each option pays for what it holds", "[tools][memory]") {
  const MemoryBill plain = job_of({"--ranks", "2"}).memory;
  const double weights = plain.lines().front().bytes;
  CHECK(bytes_at(plain, Time::Always) > weights);
  // AdamW keeps two numbers for every weight beside its gradient, plain SGD none.
  const MemoryBill sgd = job_of({"--ranks", "2", "--optimizer", "sgd"}).memory;
  CHECK(plain.to_run() - sgd.to_run() >= 2 * weights);
  // Frozen parameters have no state with any optimizer.
  const MemoryBill frozen =
      job_of({"--ranks", "2", "--freeze", "embed.*", "--freeze", "layers.*", "--freeze", "head.*"})
          .memory;
  constexpr double kTrained = 64 * sizeof(float);  // norm.weight
  CHECK(bytes_at(frozen, Time::Run) - bytes_at(sgd, Time::Run) == 2 * kTrained);
  CHECK(frozen.to_run() - sgd.to_run() == 6 * kTrained);  // a save sends and gets the states
  const MemoryBill averaged = job_of({"--ranks", "2", "--average", "0.9"}).memory;
  CHECK(bytes_at(averaged, Time::Run) - bytes_at(plain, Time::Run) >= weights);
  CHECK(std::ranges::any_of(averaged.lines(), [](const MemoryLine& line) {
    return line.what == "weights, gradients, 2 optimizer states, averages of all ranks";
  }));
  // The end compares the weights, which it holds, with averages, which are read with the weights.
  const MemoryBill compared = job_of({"--ranks", "2", "--average", "0.9", "--verify"}).memory;
  CHECK(bytes_at(compared, Time::State) - bytes_at(averaged, Time::State) == 2 * weights);
  const MemoryBill part = job_of({"--ranks", "2", "--freeze", "layers.0.*"}).memory;
  CHECK(part.to_run() < plain.to_run());
  CHECK(part.to_run() > sgd.to_run());
  const MemoryBill verified = job_of({"--ranks", "2", "--verify"}).memory;
  CHECK(bytes_at(verified, Time::Run) - bytes_at(plain, Time::Run) == 4 * weights);
  // Gradients of a microbatch, and its activations.
  CHECK(bytes_at(verified, Time::Step) - bytes_at(plain, Time::Step) > weights);
  // Processes do not share LibTorch.
  const MemoryBill apart = job_of({"--ranks", "2", "--workers", "processes"}).memory;
  CHECK(apart.to_run() > plain.to_run());
  // Every stage has two replicas.
  const MemoryBill twice =
      job_of({"--schedule", "dualpipe", "--ranks", "2", "--microbatches", "4"}).memory;
  CHECK(bytes_at(twice, Time::Run) - bytes_at(plain, Time::Run) > 3 * weights);
  // More microbatches in flight keep more activations; the weights are the same.
  const MemoryBill gpipe =
      job_of({"--ranks", "2", "--schedule", "gpipe", "--microbatches", "16"}).memory;
  CHECK(bytes_at(gpipe, Time::Step) > bytes_at(plain, Time::Step));
  CHECK(bytes_at(gpipe, Time::Run) == bytes_at(plain, Time::Run));
}

TEST_CASE("a check in the order of the ranks holds a second model and its sums",
          "[tools][memory][strategies]") {
  const auto check_takes = [](const std::string& level) {
    std::vector<std::string> words{"--ranks", "2", "--dp", "2", "--microbatches", "4"};
    words.insert(words.end(), {"--zero", level});
    const double without = bytes_at(job_of(words).memory, Time::Run);
    words.emplace_back("--verify");
    return bytes_at(job_of(words).memory, Time::Run) - without;
  };
  const double weights = job_of({"--ranks", "2"}).memory.lines().front().bytes;
  CHECK(check_takes("0") == 2 * 4 * weights + 2 * weights);  // a sum of each copy
  CHECK(check_takes("1") == check_takes("0"));
  // A sum of each copy and round, of which each of the 4 microbatches of a copy may have one.
  CHECK(check_takes("2") > check_takes("0"));
  CHECK(check_takes("2") <= 2 * 4 * weights + 8 * weights);
}

TEST_CASE("recomputing saves nothing in the check of one process", "[tools][memory]") {
  const auto check_takes = [](const std::string& recompute) {
    const std::vector<std::string> words{"--ranks", "2", "--recompute", recompute, "--verify"};
    const MemoryBill bill = job_of(words).memory;
    for (const MemoryLine& line : bill.lines()) {
      if (line.what == "--verify: activations and gradients of one microbatch") {
        return line.bytes;
      }
    }
    return 0.0;
  };
  CHECK(check_takes("none") > 0.0);
  CHECK(check_takes("stage") >= check_takes("none"));
}

TEST_CASE("all lines of a run add up (MB-1)", "[tools][memory]") {
  const MemoryBill bill = job_of({}).memory;
  CHECK(bill.to_compile() == bytes_at(bill, Time::Always) + bytes_at(bill, Time::Compiling));
  CHECK(bill.to_run() == bytes_at(bill, Time::Always) + bytes_at(bill, Time::Run) +
                             bytes_at(bill, Time::Step) + bytes_at(bill, Time::State));
}

TEST_CASE("what ranks hold on GPUs is not billed to the machine", "[tools][memory]") {
  const MemoryBill here = job_of({"--ranks", "2", "--dry-run"}).memory;
  const MemoryBill there = job_of({"--ranks", "2", "--dry-run", "--device", "cuda"}).memory;
  CHECK(here.on_gpus() == 0.0);
  double on_ranks = 0.0, cuda_part = 0.0;
  for (const MemoryLine& line : there.lines()) {
    on_ranks += line.on_gpus ? line.bytes : 0.0;
    cuda_part += line.what == "LibTorch's CUDA part" ? line.bytes : 0.0;
  }
  const double weights = there.lines().front().bytes;
  CHECK(there.on_gpus() == on_ranks);
  CHECK(there.on_gpus() > 4 * weights);  // with gradients and AdamW's two numbers
  CHECK(cuda_part > 0.0);
  CHECK(there.to_run() == Catch::Approx(here.to_run() - on_ranks + cuda_part));
  const std::vector<MemoryLimit> limits{{"this machine", 1e12},
                                        {"2 GPUs", there.on_gpus() - 1, true}};
  CHECK(there.json(limits).at("fits") == false);
  CHECK(there.json({{"this machine", 1e12}}).at("fits") == true);
}

}  // namespace stagecraft::tools
