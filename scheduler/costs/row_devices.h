/// row_devices returns what the devices behind the rows of a schedule can do.
///
/// A row that stands for several devices is as fast as its slowest one and has the memory of its
/// smallest one: all of them run the same tasks. Pure; any thread.
#pragma once

#include <map>
#include <vector>

#include "stagecraft/scheduler/costs/costs.h"
#include "stagecraft/scheduler/model/schedule.h"

namespace stagecraft {

/// Returns the traits of a device, listed or not.
[[nodiscard]] DeviceTraits traits_of(const std::map<int, DeviceTraits>& devices, int device);
/// Returns the bytes of a device: `usual` if it states none.
[[nodiscard]] double memory_of(const std::map<int, DeviceTraits>& devices,
                               int device,
                               double usual);

/// Returns by row the speed of its devices; 1 for a row without a device.
[[nodiscard]] std::vector<double> speeds_of_rows(const std::map<int, DeviceTraits>& devices,
                                                 const Schedule& schedule);

/// Returns by row the bytes of its devices. `usual`: of devices that state none.
[[nodiscard]] std::vector<double> memory_of_rows(const std::map<int, DeviceTraits>& devices,
                                                 const Schedule& schedule,
                                                 double usual);

}  // namespace stagecraft
