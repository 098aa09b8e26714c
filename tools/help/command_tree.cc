#include "stagecraft/tools/help/command_tree.h"

#include <array>
#include <cstdio>
#include <memory>
#include <stdexcept>

#include <nlohmann/json.hpp>

namespace stagecraft::pages {
namespace {

using Json = nlohmann::json;

Json described(const std::string& program, const std::string& words) {
  const std::string line = "'" + program + "' " + words + " --describe";
  const std::unique_ptr<std::FILE, int (*)(std::FILE*)> pipe(popen(line.c_str(), "r"), &pclose);
  std::string text;
  std::array<char, 4096> piece{};
  while (pipe != nullptr) {
    const std::size_t read = std::fread(piece.data(), 1, piece.size(), pipe.get());
    if (read == 0) {
      break;
    }
    text.append(piece.data(), read);
  }
  if (text.empty()) {
    throw std::runtime_error("expected a description from " + line + ", found none");
  }
  return Json::parse(text);
}

Option option_of(const Json& json) {
  return {.label = json.at("label"),
          .names = json.at("names"),
          .value = json.at("value"),
          .choices = json.at("choices"),
          .repeats = json.at("repeats"),
          .text = json.at("text"),
          .group = json.at("group")};
}

std::vector<Option> options_of(const Json& json, const char* key) {
  std::vector<Option> options;
  for (const Json& option : json.value(key, Json::array())) {
    options.push_back(option_of(option));
  }
  return options;
}

/// `words`: those after the program's name.
CommandTree read_command(const std::string& program, const std::string& words) {
  const Json json = described(program, words);
  CommandTree command{.name = json.at("name"),
                      .arguments = {},
                      .summary = {},
                      .usage = json.at("usage"),
                      .about = json.at("about"),
                      .notes = json.at("notes"),
                      .arguments_of = options_of(json, "arguments"),
                      .options = options_of(json, "options"),
                      .commands = {}};
  for (const Json& entry : json.value("commands", Json::array())) {
    const auto word = entry.at("name").get<std::string>();
    CommandTree below = read_command(program, words.empty() ? word : words + ' ' + word);
    below.arguments = entry.at("arguments");
    below.summary = entry.at("about");
    command.commands.push_back(std::move(below));
  }
  return command;
}

}  // namespace

std::string CommandTree::word() const {
  return name.substr(name.rfind(' ') + 1);
}

CommandTree read_commands(const std::string& program) {
  return read_command(program, "");
}

bool takes_value(const Option& option) {
  return !option.value.empty();
}

bool takes_file(const Option& option) {
  return option.value.find("FILE") != std::string::npos;
}

bool takes_folder(const Option& option) {
  return !takes_file(option) && option.value.find("DIR") != std::string::npos;
}

}  // namespace stagecraft::pages
