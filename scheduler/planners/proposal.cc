#include "stagecraft/scheduler/planners/proposal.h"

#include <algorithm>
#include <tuple>

#include <fmt/format.h>

namespace stagecraft {

int PlanProposal::fullest() const {
  return static_cast<int>(std::ranges::max_element(bytes) - bytes.begin());
}

int PlanProposal::first_device(int row) const {
  const std::vector<int>& all = devices_of_row[static_cast<std::size_t>(row)];
  return all.empty() ? row : all.front();
}

double PlanProposal::needs() const {
  return most_bytes() * (1 + kMemoryMargin);
}

int PlanProposal::tightest() const {
  std::size_t tightest = 0;
  for (std::size_t row = 1; row < bytes.size(); ++row) {
    if (lacks_on(row) > lacks_on(tightest)) {
      tightest = row;
    }
  }
  return static_cast<int>(tightest);
}

double PlanProposal::lacks() const {
  return lacks_on(static_cast<std::size_t>(tightest()));
}

bool leads(const PlanProposal& one, const PlanProposal& other) {
  if (one.fits != other.fits) {
    return one.fits;
  }
  if (std::max(one.step, other.step) > std::min(one.step, other.step) * (1 + kAlike)) {
    return one.step < other.step;
  }
  const auto rank = [](const PlanProposal& p) {
    return std::tuple(p.candidate.stages.size(), p.most_bytes(), p.step);
  };
  return rank(one) <= rank(other);
}

std::string to_string(const Bottleneck& bottleneck) {
  const double percent = 100 * bottleneck.share;
  switch (bottleneck.kind) {
    case Bottleneck::Kind::Device:
      return fmt::format("device {} computes {:.0f} % of the step", bottleneck.from, percent);
    case Bottleneck::Kind::Link:
      return fmt::format(
          "the link {}-{} carries {:.0f} % of the step", bottleneck.from, bottleneck.to, percent);
    case Bottleneck::Kind::Rounds:
      return fmt::format(
          "sums and gathers of copies that share what they hold take {:.0f} % of the step",
          percent);
    case Bottleneck::Kind::Update:
      break;
  }
  return fmt::format("the update, with sums of gradients over copies, takes {:.0f} % of the step",
                     percent);
}

}  // namespace stagecraft
