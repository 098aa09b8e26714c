#include "stagecraft/scheduler/planners/capslog/memory_cut.h"

#include <algorithm>
#include <cstddef>
#include <functional>
#include <limits>
#include <utility>

#include <fmt/format.h>

#include "stagecraft/base/byte_count.h"
#include "stagecraft/base/error.h"
#include "stagecraft/scheduler/planners/capslog/fill_first.h"
#include "stagecraft/scheduler/planners/capslog/sweep.h"

namespace stagecraft {
namespace {

void require_operators(int operators, int devices) {
  if (devices < 1 || operators < devices) {
    throw Error(
        Errc::UsageArgument,
        fmt::format("a device holds at least one operator; found {} devices for {} operators",
                    devices,
                    operators));
  }
}

/// Improves the cut of all operators, part by part.
class Search {
 public:
  Search(const OperatorMemory& memory, int devices)
      : memory_(memory), whole_{.end = memory.size(), .devices = devices} {
    require_operators(memory.size(), devices);
    const auto count = static_cast<std::size_t>(devices);
    cut_.ends.resize(count);
    cut_.bytes.resize(count);
    trial_.resize(count);
    (void)fill_first(memory_, whole_, std::numeric_limits<double>::infinity(), cut_.ends);
    weigh(whole_);
  }

  void fill_devices() { lower_peak(whole_, filling()); }

  /// Finds the smallest peak if filling devices in turn may miss it.
  void sweep() {
    Sweep sweep(memory_, whole_.devices);
    lower_peak(whole_, [&](const CutPart& part, double threshold) {
      return sweep.fill(part, threshold, trial_);
    });
  }

  /// Keeps the fullest device and lowers the peak on either side of it.
  void even_out() { even_out(whole_); }

  [[nodiscard]] MemoryCut take() { return std::move(cut_); }

 private:
  /// Writes a cut below a threshold into trial_ if it can.
  using Probe = std::function<Filled(const CutPart& part, double threshold)>;

  [[nodiscard]] Probe filling() {
    return [this](const CutPart& part, double threshold) {
      return fill_first(memory_, part, threshold, trial_);
    };
  }

  /// Requires: the part is cut.
  void lower_peak(const CutPart& part, const Probe& probe) {
    double low = least_peak(part);
    double high = *fullest(part);
    while (low < high) {
      double threshold = low + (high - low) / 2;
      threshold = threshold < high ? threshold : low;
      const Filled filled = probe(part, threshold);
      if (filled.peak <= threshold) {
        std::copy_n(trial_.begin() + part.place, part.devices, cut_.ends.begin() + part.place);
        weigh(part);
        high = *fullest(part);
      } else {
        low = filled.next;
      }
    }
  }

  [[nodiscard]] double least_peak(const CutPart& part) const {
    double least = 0;
    for (int op = part.first; op < part.end; ++op) {
      least = std::max(least, memory_.least(op));
    }
    return least;
  }

  void weigh(const CutPart& part) {
    int op = part.first;
    for (int place = part.place; place < part.place + part.devices; ++place) {
      auto stage = memory_.stage_at(place, op);
      double& bytes = cut_.bytes[static_cast<std::size_t>(place)];
      for (; op < cut_.ends[static_cast<std::size_t>(place)]; ++op) {
        bytes = stage.append(op);
      }
    }
  }

  [[nodiscard]] std::vector<double>::const_iterator fullest(const CutPart& part) const {
    const auto begin = cut_.bytes.begin() + part.place;
    return std::max_element(begin, begin + part.devices);
  }

  void even_out(const CutPart& part) {
    const auto most = static_cast<int>(fullest(part) - cut_.bytes.begin());
    const auto end_of = [&](int place) { return cut_.ends[static_cast<std::size_t>(place)]; };
    const int before = most - part.place;
    const int first = before == 0 ? part.first : end_of(most - 1);
    for (const CutPart& side :
         {CutPart{part.first, first, part.place, before},
          CutPart{end_of(most), part.end, most + 1, part.devices - 1 - before}}) {
      if (side.devices > 1) {
        lower_peak(side, filling());
        even_out(side);
      }
    }
  }

  const OperatorMemory& memory_;
  const CutPart whole_;
  MemoryCut cut_;
  std::vector<int> trial_;
};

}  // namespace

double MemoryCut::peak() const {
  return bytes.empty() ? 0 : *std::ranges::max_element(bytes);
}

MemoryCut memory_cut(const OperatorMemory& memory, int devices) {
  Search search(memory, devices);
  search.fill_devices();
  if (!memory.filling_is_exact() && memory.size() <= kMaxSweptOperators) {
    search.sweep();
  }
  search.even_out();
  return search.take();
}

std::optional<Error> lack_of_memory(const MemoryCut& cut, double capacity) {
  const auto fullest = std::ranges::max_element(cut.bytes);
  if (fullest == cut.bytes.end() || *fullest <= capacity) {
    return std::nullopt;
  }
  const auto place = static_cast<std::size_t>(fullest - cut.bytes.begin());
  return Error(Errc::PlanInfeasible,
               fmt::format("stage {} of operators {} to {} needs {} more than there are: it "
                           "holds {}, a device may hold {}, and no cut into {} stages in a row "
                           "holds less; use more devices or smaller microbatches",
                           place,
                           place == 0 ? 0 : cut.ends[place - 1],
                           cut.ends[place] - 1,
                           enough_bytes_text(*fullest - capacity),
                           bytes_text(*fullest),
                           bytes_text(capacity),
                           cut.ends.size()));
}

}  // namespace stagecraft
