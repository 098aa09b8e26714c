#include "stagecraft/scheduler/formats/json/piper_directives.h"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "stagecraft/base/nearest.h"
#include "stagecraft/scheduler/formats/json/piper_words.h"
#include "stagecraft/scheduler/formats/parts/cell_text.h"

namespace stagecraft::formats {

const PiperTag* PiperFilter::tag(std::string_view name) const {
  const auto found = std::ranges::find(tags, name, &PiperTag::name);
  return found == tags.end() ? nullptr : &*found;
}

bool PiperDirective::has(std::string_view key) const {
  return std::ranges::find(keys, key, &Key::name) != keys.end();
}

std::string unknown_op(std::string_view op) {
  return fmt::format(
      "{} is not an op of a directive; {}there are split, place, order, replicate and shard",
      quoted(op),
      did_you_mean(op, {"split", "place", "order", "replicate", "shard"}));
}

void PiperDirectiveReader::open_array(std::string_view what) {
  if (json_.next() != JsonReader::Kind::Array) {
    json_.refuse(json_.offset(), fmt::format("expected a list: {}", what));
  }
  json_.open();
}

void PiperDirectiveReader::note(std::size_t offset, std::string_view what) {
  faults_.attempt([&] { json_.refuse(offset, what); });
}

PiperTag PiperDirectiveReader::tag(const std::string& name) {
  if (json_.next() != JsonReader::Kind::String) {
    return {.name = name, .number = json_.integer()};
  }
  const std::string text = json_.string().value_or("");
  return {.name = name, .number = whole_number(text), .any = text == "*"};
}

PiperFilter PiperDirectiveReader::filter() {
  PiperFilter filter{.offset = json_.offset(), .tags = {}, .pass = {}};
  if (json_.next() != JsonReader::Kind::Object) {
    json_.refuse(filter.offset, R"(a filter is an object, e.g. {"PP": 0, "MB": 0, "PASS": "F"})");
  }
  json_.open();
  while (const auto name = json_.next_key()) {
    const std::size_t at = json_.offset();
    if (*name != kPassTag) {
      std::erase_if(filter.tags, [&](const PiperTag& one) { return one.name == *name; });
      filter.tags.push_back(tag(*name));
      continue;
    }
    const std::string word = json_.string().value_or("");
    const auto* const pass =
        std::ranges::find(kPasses, word, [](const auto& entry) { return entry.first; });
    if (pass == kPasses.end()) {
      note(at, fmt::format("PASS is F, B, BI or BW, found {}", quoted(word)));
      continue;
    }
    filter.pass = pass->second;
  }
  return filter;
}

std::vector<int> PiperDirectiveReader::devices() {
  std::vector<int> devices;
  open_array("devices, e.g. [0]");
  while (json_.next_element()) {
    const std::size_t at = json_.offset();
    const int device = json_.integer().value_or(-1);
    if (device < 0) {
      json_.refuse(at, "a device is a number from 0 on");
    }
    devices.push_back(device);
  }
  return devices;
}

std::vector<std::vector<PiperFilter>> PiperDirectiveReader::groups() {
  std::vector<std::vector<PiperFilter>> groups;
  open_array("groups of filters");
  while (json_.next_element()) {
    if (!has_room(0, ++cells_)) {
      json_.refuse(json_.offset(), kNoRoom);
    }
    const std::size_t at = json_.offset();
    open_array("the filters of a group");
    auto& group = groups.emplace_back();
    while (json_.next_element()) {
      group.push_back(filter());
    }
    if (group.empty()) {
      json_.refuse(at, "a group holds one filter or more");
    }
  }
  return groups;
}

std::string PiperDirectiveReader::stream() {
  const std::size_t at = json_.offset();
  const bool absent = json_.next() == JsonReader::Kind::Null;
  const auto name = json_.string();
  if (!name && !absent) {
    note(at, "a stream has a name in quotes");
  }
  return name.value_or("");
}

bool PiperDirectiveReader::flag() {
  const std::size_t at = json_.offset();
  const bool known = json_.next() == JsonReader::Kind::Boolean;
  const bool set = json_.skip() == "true";
  if (!known) {
    note(at, "expected true or false");
  }
  return set;
}

std::optional<int> PiperDirectiveReader::size() {
  const std::size_t at = json_.offset();
  const bool absent = json_.next() == JsonReader::Kind::Null;
  const std::optional<int> size = json_.integer();
  constexpr int kMost = 1 << 30;
  if (!absent && (size.value_or(0) < 1 || *size > kMost)) {
    note(at, fmt::format("a bucket_size is a number of megabytes from 1 to {}", kMost));
  }
  return size;
}

bool PiperDirectiveReader::take_value(const std::string& key, PiperDirective& read) {
  if (key == "op") {
    read.op = json_.string().value_or("");
  } else if (key == "filter") {
    read.filter = filter();
  } else if (key == "filters") {
    read.groups = groups();
  } else if (key == "devices") {
    read.devices = devices();
  } else if (key == "dim_name") {
    read.dimension = json_.string().value_or("");
  } else if (key == "num_microbatches") {
    read.microbatches = json_.integer();
  } else if (key == "stream") {
    read.stream = stream();
  } else if (key == "gather_stream") {
    read.gather_stream = stream();
  } else if (key == "reduce_stream") {
    read.reduce_stream = stream();
  } else if (key == "shard_params") {
    read.shard_params = flag();
  } else if (key == "shard_grads") {
    read.shard_grads = flag();
  } else if (key == "bucket_size") {
    read.bucket_size = size();
  } else {
    return false;
  }
  return true;
}

PiperDirective PiperDirectiveReader::directive() {
  PiperDirective read{.offset = json_.offset()};
  if (json_.next() != JsonReader::Kind::Object) {
    json_.refuse(read.offset, R"(a directive is an object with "op")");
  }
  json_.open();
  while (const auto key = json_.next_key()) {
    read.keys.push_back({*key, json_.key_offset()});
    if (!take_value(*key, read)) {
      (void)json_.skip();
    }
  }
  return read;
}

void PiperDirectiveReader::read(const std::function<void(PiperDirective)>& take) {
  open_array("Piper's directives");
  while (json_.next_element()) {
    PiperDirective next = directive();
    faults_.attempt([&] { take(std::move(next)); });
  }
  json_.finish();
}

}  // namespace stagecraft::formats
