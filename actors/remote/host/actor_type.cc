#include "stagecraft/actors/remote/host/actor_type.h"

#include <algorithm>
#include <iterator>

#include <c10/util/Type.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include "stagecraft/base/error.h"

namespace stagecraft {

std::string detail::method_name(std::string_view pretty_function) {
  // "... [with auto Method = &Tokenizer::encode; std::string = ...]", or with parentheses around it
  const std::string_view mark = "Method = ";
  const std::size_t at = pretty_function.find(mark);
  if (at == std::string_view::npos) {
    return std::string(pretty_function);
  }
  std::string_view name = pretty_function.substr(at + mark.size());
  name = name.substr(0, name.find_first_of(";]"));
  const std::size_t begin = name.find_first_not_of("(& ");
  const std::size_t end = name.find_first_of("()", begin);
  return std::string(name.substr(begin, end - begin));
}

std::string detail::type_name(const std::type_info& type) {
  return c10::demangle(type.name());
}

ActorTypes::ActorTypes(std::vector<ActorType> types) {
  for (ActorType& type : types) {
    add(std::move(type));
  }
}

void ActorTypes::add(ActorType type) {
  const auto is_same = [](const ActorMethod& a, const ActorMethod& b) { return a.call == b.call; };
  const std::scoped_lock lock(mutex_);
  const auto [known, is_new] = types_.try_emplace(type.name, type);
  if (!is_new && (known->second.make != type.make ||
                  !std::ranges::equal(known->second.methods, type.methods, is_same))) {
    throw Error(Errc::UsageArgument,
                fmt::format("two classes of this program have the name {}, and actors are found by "
                            "their class's name: rename one",
                            type.name));
  }
}

const ActorType& ActorTypes::find(const std::string& name,
                                  const std::vector<std::string>& methods) const {
  const std::scoped_lock lock(mutex_);
  const auto found = types_.find(name);
  if (found == types_.end()) {
    std::vector<std::string> known;
    for (const auto& [type, unused] : types_) {
      known.push_back(type);
    }
    throw Error(
        Errc::UsageArgument,
        fmt::format("the program of this worker knows no actor type {}, but {}: start the "
                    "workers with your own program (SpawnOptions::program) and list the "
                    "type there, worker_main(argc, argv, types<{}>())",
                    name,
                    known.empty() ? "none at all" : fmt::format("{}", fmt::join(known, ", ")),
                    name));
  }
  std::vector<std::string> mine;
  std::ranges::transform(found->second.methods, std::back_inserter(mine), &ActorMethod::name);
  if (!std::ranges::equal(mine, methods)) {
    throw Error(Errc::UsageArgument,
                fmt::format("the program of this worker lists other methods of {} than the "
                            "driver's: {} here, {} there; start all from the same build",
                            name,
                            fmt::join(mine, ", "),
                            fmt::join(methods, ", ")));
  }
  return found->second;
}

}  // namespace stagecraft
