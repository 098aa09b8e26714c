#include "stagecraft/bench/step/beside_peer.h"

#include <algorithm>
#include <memory>
#include <utility>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "stagecraft/base/median.h"
#include "stagecraft/bench/seconds_of.h"

namespace stagecraft::bench {
namespace {

constexpr int kPeerRanks = 2, kPeerRounds = 3, kPeerSteps = 8, kPeerWarmUp = 2;

/// Own is one of our trainers, ready for its next steps.
struct Own {
  Own(std::string schedule, const Cluster& cluster, MeasuredModel of)
      : name(std::move(schedule)), model(std::move(of)), trainer(trainer_of(cluster)) {}

  void make_steps() {
    for (int i = 0; i < kPeerSteps; ++i) {
      const double each = seconds_of([&] { (void)trainer.step(model.inputs, model.labels).get(); });
      if (i >= kPeerWarmUp) {
        seconds.push_back(each);
      }
    }
  }

  std::string name;
  MeasuredModel model;
  Trainer trainer;
  std::vector<double> seconds;  ///< of each step

 private:
  [[nodiscard]] Trainer trainer_of(const Cluster& cluster) const {
    Program program = model.compile();
    Schedule schedule = schedule_for(name, program.stage_graph(), model.microbatches);
    return {cluster, std::move(program), std::move(schedule), AdamW{}};
  }
};

struct Other {
  std::string name;
  std::vector<std::string> mode;
  std::vector<double> seconds;  ///< the median of each run
};

std::vector<std::string> arguments_of(const std::vector<std::string>& mode, std::int64_t dim) {
  const examples::LlamaOptions size = llama_options(dim, kPeerRanks);
  std::vector<std::string> arguments = mode;
  const auto add = [&](const char* option, std::int64_t value) {
    arguments.insert(arguments.end(), {option, std::to_string(value)});
  };
  add("--dim", size.dim);
  add("--layers", size.layers);
  add("--heads", size.heads);
  add("--ffn", size.ffn);
  add("--seq", size.sequence);
  add("--microbatch", kLlamaSequences);
  add("--microbatches", kMicrobatches);
  add("--world", kPeerRanks);
  add("--steps", kPeerSteps);
  add("--warmup", kPeerWarmUp);
  add("--ideal-reps", 0);
  return arguments;
}

template <class Contenders>
std::vector<BesidePeer::Contender> medians_of(const Contenders& all) {
  std::vector<BesidePeer::Contender> result;
  for (const auto& one : all) {
    result.push_back({one.name, median(one.seconds)});
  }
  return result;
}

}  // namespace

const BesidePeer::Contender& BesidePeer::best(const std::vector<Contender>& of) {
  return *std::ranges::min_element(of, {}, &Contender::step);
}

BesidePeer beside_peer(const Cluster& cluster, const Peer& peer, std::int64_t dim) {
  std::vector<Own> ours;
  ours.reserve(2);
  ours.emplace_back("1f1b", cluster, llama(dim, kPeerRanks));
  ours.emplace_back("zb-v", cluster, llama(dim, 2 * kPeerRanks));
  std::vector<Other> theirs = {{"1f1b", {"--schedule", "1f1b", "--threads", "1"}, {}},
                               {"interleaved", {"--schedule", "interleaved", "--threads", "1"}, {}},
                               {"one process, 2 threads", {"--single", "--threads", "2"}, {}}};
  for (int round = 0; round < kPeerRounds; ++round) {
    for (Own& own : ours) {
      own.make_steps();
    }
    for (Other& other : theirs) {
      other.seconds.push_back(median_step_of(peer, arguments_of(other.mode, dim)));
    }
  }
  return {.ours = medians_of(ours), .theirs = medians_of(theirs)};
}

std::string text_of(const BesidePeer& result) {
  const BesidePeer::Contender& fastest = BesidePeer::best(result.theirs);
  std::string text;
  for (const auto& [name, step] : result.theirs) {
    text += fmt::format("  peer, {}: step {:.0f} ms\n", name, step * 1e3);
  }
  for (const auto& [name, step] : result.ours) {
    text += fmt::format("  ours, {}: step {:.0f} ms", name, step * 1e3);
    for (const auto& other : result.theirs) {
      text += fmt::format(", {:.2f} x as fast as {}", other.step / step, other.name);
    }
    text += "\n";
  }
  const double own = BesidePeer::best(result.ours).step, wanted = fastest.step / kPeerGoal;
  text +=
      fmt::format("  goal {} x the peer's best ({}): a step of {:.0f} ms; reached {:.2f} x by {}",
                  kPeerGoal,
                  fastest.name,
                  wanted * 1e3,
                  result.reached(),
                  BesidePeer::best(result.ours).name);
  text += own > wanted ? fmt::format(", {:.0f} ms too long: {:.1f} % of the step\n",
                                     (own - wanted) * 1e3,
                                     100.0 * (own - wanted) / own)
                       : std::string(": met\n");
  return text;
}

nlohmann::json json_of(const BesidePeer& result) {
  const auto steps = [](const std::vector<BesidePeer::Contender>& all) {
    nlohmann::json json;
    for (const auto& [name, step] : all) {
      json[name] = step;
    }
    return json;
  };
  return {{"ours", steps(result.ours)},
          {"peer", steps(result.theirs)},
          {"goal", kPeerGoal},
          {"reached", result.reached()}};
}

}  // namespace stagecraft::bench
