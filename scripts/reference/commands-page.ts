/** The commands with the text of their `--help`. */
import { commands, usage } from '../../src/commands/list.ts';

export async function pageOfCommands(): Promise<string> {
  const sections = await Promise.all(
    Object.entries(commands).map(async ([name, { summary, load }]) => {
      const { default: command } = await load();
      return `## ${name}

${summary[0]!.toUpperCase()}${summary.slice(1)}.

\`\`\`text
${command.usage}
\`\`\``;
    }),
  );
  return `# Commands

\`npm run lab -- scripts/reference.ts\` generates this page from the commands. In this repository, \`npm run demo\`, \`dev\`, \`sandbox\`, \`app\`, \`certify\`, \`new-step\` and \`drift\` start the commands of these names, with options after \`--\`. \`npx marketplace-app-kit COMMAND\` starts any of them, also in a project of your own. [Configuration](../configuration.md) lists the settings.

\`\`\`text
${usage}
\`\`\`

${sections.join('\n\n')}
`;
}
