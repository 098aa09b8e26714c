#include "stagecraft/actors/data/local_source.h"

#include <utility>

#include "stagecraft/base/error.h"
#include "stagecraft/base/process/named_makers.h"

namespace stagecraft {
namespace {

using Sources = NamedMakers<std::unique_ptr<StepSource>, const std::string&>;

Sources& sources() {
  static Sources all({.name = "source", .adds_by = "register_source"});
  return all;
}

}  // namespace

void register_source(const std::string& name, SourceMaker make) {
  sources().add(name, std::move(make));
}

std::unique_ptr<StepSource> make_source(const std::string& name, const std::string& argument) {
  std::unique_ptr<StepSource> source = sources().at(name)(argument);
  if (source == nullptr) {
    throw Error(Errc::UsageArgument, "its registered maker returned no source");
  }
  return source;
}

}  // namespace stagecraft
