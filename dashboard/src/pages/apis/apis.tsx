import { useQuery } from "@tanstack/react-query";
import { Link } from "@tanstack/react-router";
import { read } from "../../api/client.ts";
import { ErrorBox } from "../../ui/error-box.tsx";
import { Page } from "../../ui/page.tsx";
import { Skeleton } from "../../ui/skeleton.tsx";

export function ApisPage() {
  const { data, error } = useQuery(read("apis.listApis", {}));
  return (
    <Page title="APIs">
      {error && <ErrorBox error={error} />}
      {!data && !error && <Skeleton />}
      <ul>
        {data?.map(({ apiId, name }) => (
          <li key={apiId}>
            <Link to="/apis/$apiId" params={{ apiId }} className="link">
              {name}
            </Link>
          </li>
        ))}
      </ul>
    </Page>
  );
}
