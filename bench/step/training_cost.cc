#include "stagecraft/bench/step/training_cost.h"

#include <sys/resource.h>

#include <algorithm>
#include <map>
#include <utility>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "stagecraft/base/median.h"
#include "stagecraft/bench/seconds_of.h"
#include "stagecraft/stagecraft.h"

namespace stagecraft::bench {
namespace {

constexpr int kCostWarmUp = 3;  // for pools, optimizer state, pages
constexpr int kCostSteps = 3;   // of each kind per round
constexpr std::size_t kShown = 8;

struct KernelUse {
  double faults = 0.0, seconds = 0.0;

  static KernelUse now() {
    rusage use{};
    getrusage(RUSAGE_SELF, &use);
    return {static_cast<double>(use.ru_minflt),
            static_cast<double>(use.ru_stime.tv_sec) +
                1e-6 * static_cast<double>(use.ru_stime.tv_usec)};
  }
};

double seconds_of_accumulating(const RankList& list, const std::vector<InstructionTime>& timeline) {
  std::int64_t nanoseconds = 0;
  for (std::size_t i = 0; i < timeline.size(); ++i) {
    if (list.instructions[i].op == Op::Accumulate) {
      nanoseconds += timeline[i].end - timeline[i].start;
    }
  }
  return 1e-9 * static_cast<double>(nanoseconds);
}

/// Returns the bill of one step, by the caller's clock.
std::vector<PartSeconds> bill_of(double seconds,
                                 const StepResult& result,
                                 const Plan& plan,
                                 const std::vector<std::vector<CallTime>>& calls) {
  std::vector<PartSeconds> ranks;
  for (std::size_t r = 0; r < calls.size(); ++r) {
    PartSeconds known;
    for (const CallTime& call : calls[r]) {
      if (call.part != Part::Runtime) {  // it gets the time that no part claims
        known[call.part] += call.seconds;
      }
    }
    known[Part::Accumulate] = seconds_of_accumulating(plan.list_of(Rank(r)), result.timelines[r]);
    known[Part::Update] = result.ranks[r].update;
    known[Part::Waiting] = result.ranks[r].waiting;
    ranks.push_back(parted(seconds, known));
  }
  return ranks;
}

class CallSums {
 public:
  void add(const std::vector<std::vector<CallTime>>& ranks) {
    for (const std::vector<CallTime>& calls : ranks) {
      for (const CallTime& call : calls) {
        CallTime& sum = sums_.try_emplace(call.name, CallTime{call.name, call.part}).first->second;
        sum.seconds += call.seconds;
        sum.calls += call.calls;
      }
    }
    ++steps_;
  }

  /// Returns the means per step; the longest first.
  [[nodiscard]] std::vector<CallTime> means() const {
    std::vector<CallTime> all;
    for (const auto& [name, sum] : sums_) {
      all.push_back({name, sum.part, sum.seconds / steps_, sum.calls / steps_});
    }
    std::ranges::sort(all, std::ranges::greater(), &CallTime::seconds);
    return all;
  }

 private:
  std::map<std::string, CallTime> sums_;
  int steps_ = 0;
};

nlohmann::json json_of(const PartSeconds& parts) {
  nlohmann::json json;
  for (std::size_t p = 0; p < kParts; ++p) {
    const auto part = static_cast<Part>(p);
    json[std::string(name_of(part))] = parts[part];
  }
  return json;
}

}  // namespace

TrainingCost training_cost(const MeasuredModel& model, const CostRequest& request) {
  const Program program = model.compile();
  const Schedule schedule =
      schedule_for(request.schedule, program.stage_graph(), model.microbatches);
  const int ranks = Layout::of(schedule).ranks();
  const Cluster cluster = Cluster::local(ranks);
  StepProbe probe(ranks);
  Trainer trainer(cluster,
                  program,
                  schedule,
                  AdamW{},
                  {.threads_per_worker = request.threads,
                   .record_timeline = true,
                   .before_instruction = probe.hook()});
  StepResult result;
  const auto step = [&] { result = trainer.step(model.inputs, model.labels).get(); };
  for (int i = 0; i < kCostWarmUp; ++i) {
    step();
  }
  std::vector<ProductCalls> products = probe.products(step);
  for (ProductCalls& of_rank : products) {
    of_rank.prepare();
  }
  std::vector<double> plain, watched, alone;
  KernelUse kernel;
  StepBill bill;
  CallSums sums;
  for (int round = 0; round < request.rounds; ++round) {
    const KernelUse before = KernelUse::now();
    for (int i = 0; i < kCostSteps; ++i) {
      plain.push_back(seconds_of(step));
    }
    const KernelUse after = KernelUse::now();
    kernel.faults += after.faults - before.faults;
    kernel.seconds += after.seconds - before.seconds;
    for (int i = 0; i < kCostSteps; ++i) {
      double seconds = 0.0;
      const auto calls = probe.timed([&] { seconds = seconds_of(step); });
      bill.add(bill_of(seconds, result, trainer.plan(), calls));
      sums.add(calls);
      watched.push_back(seconds);
    }
    const auto products_alone = [&](Rank rank) {
      for (int i = 0; i < kCostSteps; ++i) {
        products[rank.index()].run();
      }
    };
    alone.push_back(std::ranges::max(probe.on_ranks(products_alone, step)) / kCostSteps);
  }
  const auto steps = static_cast<double>(plain.size());
  return {.model = model.name,
          .schedule = request.schedule,
          .ranks = ranks,
          .threads = request.threads,
          .step = median(plain),
          .watched_step = median(watched),
          .products_alone = median(alone),
          .page_faults = kernel.faults / steps,
          .kernel = kernel.seconds / steps,
          .bill = std::move(bill),
          .calls = sums.means()};
}

std::string text_of(const TrainingCost& cost) {
  std::string text = fmt::format("{}: {} on {} rank{}, {} thread{} each\n",
                                 cost.model,
                                 cost.schedule,
                                 cost.ranks,
                                 cost.ranks == 1 ? "" : "s",
                                 cost.threads,
                                 cost.threads == 1 ? "" : "s");
  text += fmt::format(
      "  step {:.1f} ms; matrix products alone {:.1f} ms, the step takes {:.2f} x as long; {:.0f} "
      "page faults and {:.1f} ms in the kernel a step\n",
      cost.step * 1e3,
      cost.products_alone * 1e3,
      cost.step / cost.products_alone,
      cost.page_faults,
      cost.kernel * 1e3);
  text += fmt::format("  watched {:.1f} ms ({:+.1f} %), mean {:.1f}:\n",
                      cost.watched_step * 1e3,
                      (cost.watched_step / cost.step - 1.0) * 100.0,
                      cost.bill.step() * 1e3);
  text += table_of(cost.bill);
  text += "  of these, in all:\n";
  std::size_t shown = 0;
  for (const CallTime& call : cost.calls) {
    if (shown < kShown && call.part == Part::OtherOperators) {
      ++shown;
      text += fmt::format(
          "    {:34} {:8.1f} ms {:7} calls\n", call.name, call.seconds * 1e3, call.calls);
    }
  }
  return text;
}

nlohmann::json json_of(const TrainingCost& cost) {
  nlohmann::json ranks = nlohmann::json::array(), calls = nlohmann::json::array();
  for (std::size_t r = 0; r < cost.bill.ranks(); ++r) {
    ranks.push_back(json_of(cost.bill.of(r)));
  }
  for (const CallTime& call : cost.calls) {
    calls.push_back({{"name", call.name},
                     {"part", name_of(call.part)},
                     {"seconds", call.seconds},
                     {"calls", call.calls}});
  }
  return {{"model", cost.model},
          {"schedule", cost.schedule},
          {"ranks", cost.ranks},
          {"threads", cost.threads},
          {"step", cost.step},
          {"watched_step", cost.watched_step},
          {"watched_mean", cost.bill.step()},
          {"products_alone", cost.products_alone},
          {"page_faults", cost.page_faults},
          {"kernel", cost.kernel},
          {"bill", ranks},
          {"calls", calls}};
}

}  // namespace stagecraft::bench
