/// What takes the time of a training step, and how near is it to the possible?
///
///   train_llama [--measure ideal,bill,threads] [--peer PYTHON --peer-script FILE] [--json] ...
///
/// This program compares a pipelined Llama with its schedule's makespan (beside_ideal.h), divides
/// the time of its steps, and of those of a ViT and a U-Net, into parts beside their matrix
/// products alone (training_cost.h), measures the gain of a second thread inside the operators
/// (thread_gain.h), and compares with another program on the same model (beside_peer.h). All
/// compared runs take turns. docs/performance.md says how to read the figures.
#include <algorithm>
#include <exception>
#include <string>
#include <thread>
#include <vector>

#include <ATen/Parallel.h>
#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "stagecraft/base/error.h"
#include "stagecraft/bench/hardware.h"
#include "stagecraft/bench/step/beside_ideal.h"
#include "stagecraft/bench/step/beside_peer.h"
#include "stagecraft/bench/step/measured_model.h"
#include "stagecraft/bench/step/thread_gain.h"
#include "stagecraft/bench/step/train_llama_options.h"
#include "stagecraft/bench/step/training_cost.h"
#include "stagecraft/stagecraft.h"

namespace stagecraft::bench::train_llama {
namespace {

constexpr int kRanks = 2;

class Run {
 public:
  explicit Run(const TrainLlamaOptions& options) : options_(options) {}

  void all() {
    json_["hardware"] = hardware();
    json_["load_before"] = load();
    say("{}, load {:.2f}\n", hardware(), load());
    if (asks_for("ideal")) {
      measure_ideal();
    }
    if (asks_for("bill")) {
      measure_bills();
    }
    if (options_.peer) {
      measure_peer();
    }
    if (asks_for("threads")) {
      measure_threads();
    }
    json_["load_after"] = load();
    say("load {:.2f}\n", load());
    if (options_.json) {
      fmt::print("{}\n", json_.dump());
    }
  }

 private:
  template <class... T>
  void say(fmt::format_string<T...> text, T&&... values) const {
    if (!options_.json) {
      fmt::print(text, std::forward<T>(values)...);
    }
  }

  [[nodiscard]] bool asks_for(const char* measure) const {
    return std::ranges::find(options_.measures, measure) != options_.measures.end();
  }

  [[nodiscard]] Cluster cluster() const {
    return options_.processes ? Cluster::spawn(kRanks) : Cluster::local(kRanks);
  }

  void measure_ideal() {
    const MeasuredModel model = llama(options_.dims.front(), kRanks);
    const BesideIdeal result = beside_ideal(cluster(), model);
    json_["ideal"] = json_of(result);
    say("{}: 1f1b on {} {} beside its ideal\n{}",
        model.name,
        kRanks,
        options_.processes ? "worker processes" : "threads",
        text_of(result));
  }

  /// Returns as many ranks as have processors for their threads, up to two.
  [[nodiscard]] static int ranks_of(int threads) {
    const int processors = static_cast<int>(std::thread::hardware_concurrency());
    return threads == 1 ? kRanks : std::clamp(processors / threads, 1, kRanks);
  }

  void measure_bill(const std::string& name, std::int64_t dim, int threads) {
    const int ranks = ranks_of(threads);
    const bool zb_v = name == "llama" && ranks == kRanks;  // the best of our schedules
    const int stages = zb_v ? 2 * ranks : ranks;
    const MeasuredModel model = name == "llama" ? llama(dim, stages)
                                : name == "vit" ? vit(stages)
                                                : unet(stages);
    const TrainingCost cost = training_cost(
        model, {.schedule = zb_v ? "zb-v" : "1f1b", .threads = threads, .rounds = options_.rounds});
    json_["bill"].push_back(json_of(cost));
    say("{}", text_of(cost));
  }

  void measure_bills() {
    for (const std::string& name : options_.models) {
      const auto dims =
          name == "llama" ? options_.dims : std::vector<std::int64_t>{options_.dims.front()};
      for (const std::int64_t dim : dims) {
        for (const int threads : options_.threads) {
          measure_bill(name, dim, threads);
        }
      }
    }
  }

  void measure_peer() {
    const std::int64_t dim = options_.dims.front();
    const BesidePeer result = beside_peer(cluster(), *options_.peer, dim);
    json_["peer"] = json_of(result);
    say("{}, beside the peer, in turns:\n{}", llama(dim, kRanks).name, text_of(result));
    const TrainingCost cost = training_cost(
        llama(dim, 2 * kRanks), {.schedule = "zb-v", .threads = 1, .rounds = options_.rounds});
    json_["peer"]["bill"] = json_of(cost);
    say("  our step by zb-v: {}\n", shares_of(cost.bill));
  }

  void measure_threads() {
    const ThreadGain gain = thread_gain(llama(options_.dims.front(), /*stages=*/1));
    json_["threads"] = json_of(gain);
    say("threads inside an operator, 1 rank:\n{}", text_of(gain));
  }

  const TrainLlamaOptions& options_;
  nlohmann::json json_;
};

}  // namespace

int run(int argc, char** argv) {
  try {
    const auto parsed = parse_train_llama_options(std::vector<std::string>(argv + 1, argv + argc));
    if (const auto* help = std::get_if<std::string>(&parsed)) {
      fmt::print("{}", *help);
      return 0;
    }
    at::set_num_threads(1);
    Run(std::get<TrainLlamaOptions>(parsed)).all();
    return 0;
  } catch (const Error& error) {
    fmt::print(stderr, "train_llama: {}\n", error.what());
    return error.code() == Errc::UsageArgument ? 2 : 1;
  } catch (const std::exception& error) {
    fmt::print(stderr, "train_llama: {}\n", error.what());
    return 1;
  }
}

}  // namespace stagecraft::bench::train_llama
