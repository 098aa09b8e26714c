#include "stagecraft/scheduler/costs/row_devices.h"

#include <algorithm>
#include <cmath>
#include <optional>

#include "stagecraft/scheduler/model/layout.h"

namespace stagecraft {
namespace {

/// Returns by row the least value of its devices; `otherwise` for a row without a device.
template <class Value>
std::vector<double> least_by_row(const Schedule& schedule, double otherwise, Value&& value) {
  std::vector<double> by_row;
  for (const std::vector<Rank>& ranks : ranks_of_rows(schedule)) {
    std::optional<double> least;
    for (const Rank rank : ranks) {
      least = std::min(least.value_or(value(rank.value)), value(rank.value));
    }
    by_row.push_back(least.value_or(otherwise));
  }
  return by_row;
}

}  // namespace

DeviceTraits traits_of(const std::map<int, DeviceTraits>& devices, int device) {
  const auto found = devices.find(device);
  return found == devices.end() ? DeviceTraits() : found->second;
}

double memory_of(const std::map<int, DeviceTraits>& devices, int device, double usual) {
  const double stated = traits_of(devices, device).memory;
  return std::isinf(stated) ? usual : stated;
}

std::vector<double> speeds_of_rows(const std::map<int, DeviceTraits>& devices,
                                   const Schedule& schedule) {
  if (devices.empty()) {
    return std::vector<double>(schedule.rows().size(), 1);
  }
  return least_by_row(schedule, 1, [&](int device) { return traits_of(devices, device).speed; });
}

std::vector<double> memory_of_rows(const std::map<int, DeviceTraits>& devices,
                                   const Schedule& schedule,
                                   double usual) {
  if (devices.empty()) {
    return std::vector<double>(schedule.rows().size(), usual);
  }
  return least_by_row(
      schedule, usual, [&](int device) { return memory_of(devices, device, usual); });
}

}  // namespace stagecraft
