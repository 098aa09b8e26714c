/// talk defines the messages between the doctor and its helper on another host, over ssh's standard
/// input and output. Each question is a line of JSON, and so is its answer.
///
///     {"ask":"facts","driver":"10.0.0.1","bind":""}  {"doctor":"facts","facts":{},"door":{}}
///     {"ask":"time"}                                 {"doctor":"time","unix_seconds":1795.5}
///     {"ask":"ways","ways":[],"names":[]}            {"doctor":"ways","ways":[],"names":{}}
///
/// The other end may be another build: a field that is missing in an answer has its default here,
/// and a field of another type is an error of JSON (Json::exception).
/// The helper ends when its standard input does.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include <nlohmann/json.hpp>

#include "stagecraft/tools/doctor/facts/host_facts.h"
#include "stagecraft/tools/doctor/facts/names.h"
#include "stagecraft/tools/doctor/talk/ways.h"

namespace stagecraft {

NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE_WITH_DEFAULT(
    ProcessorFacts, vendor, name, family, model, capability, features, variables)

}  // namespace stagecraft

namespace stagecraft::tools {

using Json = nlohmann::json;

struct FactsQuestion {
  std::string driver;  ///< the address of its door, in digits
  std::string bind;    ///< the host's own interface or address; empty: the one toward the driver
};

struct FactsAnswer {
  HostFacts facts;
  DoorPlace door;
  std::string no_door;  ///< the reason why there is no door; empty: there is one
};

struct TimeAnswer {
  double unix_seconds = 0;
};

struct WaysQuestion {
  std::vector<Way> ways;
  std::vector<std::string> names;
};

struct WaysAnswer {
  std::vector<TriedWay> ways;
  KnownNames names;
};

NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE_WITH_DEFAULT(MemoryLimit, who, bytes)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE_WITH_DEFAULT(
    GpuFacts, missing, remedy, runtime, driver, visible, visible_says, nccl)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE_WITH_DEFAULT(
    HostFacts, name, protocol, build, cpu, processors, memory, memfd, locked_bytes, open_files, gpu)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE_WITH_DEFAULT(DoorPlace, address, port, token)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE_WITH_DEFAULT(Way, to, door)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE_WITH_DEFAULT(TriedWay, way, fault)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE_WITH_DEFAULT(FactsQuestion, driver, bind)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE_WITH_DEFAULT(FactsAnswer, facts, door, no_door)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE_WITH_DEFAULT(TimeAnswer, unix_seconds)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE_WITH_DEFAULT(WaysQuestion, ways, names)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE_WITH_DEFAULT(WaysAnswer, ways, names)

/// Returns a line, with its newline. `kind`: "ask" or "doctor"; `word`: the word of the question.
[[nodiscard]] std::string line_of(const char* kind, const char* word, Json content);

/// Returns the content; null for a line of another kind.
[[nodiscard]] Json content_of(std::string_view line, const char* kind);

}  // namespace stagecraft::tools
