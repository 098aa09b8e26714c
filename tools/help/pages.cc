/// Writes the manual pages and the completions of the `stagecraft` command, from what the command
/// says of itself. Run by the build.
///
///     stagecraft_pages PROGRAM FOLDER VERSION
///
///     FOLDER/man1/stagecraft.1, stagecraft-train.1 ...    FOLDER/bash/stagecraft
///     FOLDER/zsh/_stagecraft                              FOLDER/fish/stagecraft.fish

#include <exception>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <stdexcept>
#include <string>

#include "stagecraft/scheduler/builders/registry.h"
#include "stagecraft/tools/help/command_tree.h"
#include "stagecraft/tools/help/completions.h"
#include "stagecraft/tools/help/man_page.h"

namespace stagecraft::pages {
namespace {

namespace fs = std::filesystem;

void write_page(const fs::path& path, const std::string& text) {
  fs::create_directories(path.parent_path());
  std::ofstream file(path, std::ios::binary);
  file << text << std::flush;
  if (!file) {
    throw std::runtime_error("cannot write " + path.string());
  }
}

/// Adds the names of schedules to the options and arguments that take them.
void add_schedules(CommandTree& command) {
  const auto add = [](Option& option) {
    for (const BuilderInfo& builder : builders()) {
      option.choices.emplace_back(builder.name);
    }
  };
  for (Option& option : command.options) {
    if (option.value == "NAME|FILE") {
      add(option);
    }
  }
  for (Option& argument : command.arguments_of) {
    if (command.name.starts_with("stagecraft schedule ") && argument.label.starts_with("NAME")) {
      add(argument);
    }
  }
  for (CommandTree& below : command.commands) {
    add_schedules(below);
  }
}

void write_pages(const std::string& program, const fs::path& folder, const std::string& version) {
  CommandTree root = read_commands(program);
  fs::remove_all(folder / "man1");  // a command may have gone
  add_schedules(root);
  for_each_command(root, [&](const CommandTree& command) {
    write_page(folder / "man1" / (page_name(command) + ".1"), man_page(command, version));
  });
  write_page(folder / "bash" / "stagecraft", bash_completion(root));
  write_page(folder / "zsh" / "_stagecraft", zsh_completion(root));
  write_page(folder / "fish" / "stagecraft.fish", fish_completion(root));
}

}  // namespace
}  // namespace stagecraft::pages

int main(int argc, char** argv) {
  if (argc != 4) {
    std::cerr << "usage: stagecraft_pages PROGRAM FOLDER VERSION\n";
    return 2;
  }
  try {
    stagecraft::pages::write_pages(argv[1], argv[2], argv[3]);
    return 0;
  } catch (const std::exception& error) {
    std::cerr << "stagecraft_pages: " << error.what() << '\n';
    return 1;
  }
}
